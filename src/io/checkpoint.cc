#include "io/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>

#include "io/file_error.h"
#include "io/json_file.h"
#include "io/quote.h"

namespace flux {
namespace {

constexpr std::string_view kEnding = ".safetensors", kIndexEnding = ".safetensors.index.json";

/// The `*.safetensors` files of a folder, by name.
std::vector<std::filesystem::path> shards_in(std::filesystem::path const& folder) {
  std::vector<std::filesystem::path> shards;
  std::error_code failed;
  for (std::filesystem::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
    if (it->path().native().ends_with(kEnding)) shards.push_back(it->path());
  if (failed) throw_file_error(folder, "read", failed.value());
  std::ranges::sort(shards);
  return shards;
}

/// How many leading characters two names share.
size_t likeness(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

Checkpoint::Checkpoint(std::filesystem::path const& path) : path_(path), folder_(path.parent_path()) {
  std::error_code ignored;  // whatever is wrong with a path, opening it says it better
  std::filesystem::path file = path;
  if (std::filesystem::is_directory(path, ignored)) {
    folder_ = path;
    file = path / "model.safetensors.index.json";
    if (!std::filesystem::exists(file, ignored)) file = path / "model.safetensors";
  }
  if (file.native().ends_with(kIndexEnding)) {
    add_index(file);
  } else if (file == path || std::filesystem::exists(file, ignored)) {
    add(file);
  } else {
    auto const shards = shards_in(folder_);
    if (shards.empty())
      throw Error(ErrorKind::kInvalid,
                  fmt::format("the folder {} holds no *.safetensors file; give a checkpoint in that format",
                              quote(path.native())));
    for (auto const& shard : shards) add(shard);
  }
}

void Checkpoint::add(std::filesystem::path const& file) {
  MappedFile mapped(file);
  for (auto& [name, tensor] : parse_safetensors(mapped.bytes(), file.native()))
    if (!tensors_.emplace(name, std::move(tensor)).second)
      throw Error(ErrorKind::kInvalid, fmt::format("{} holds tensor {}, which another file of the checkpoint holds too",
                                                   quote(file.native()), quote(name)));
  files_.push_back(std::move(mapped));
}

void Checkpoint::add_index(std::filesystem::path const& index) {
  auto fail = [&](std::string const& what) {
    throw Error(ErrorKind::kInvalid, fmt::format("the index {} {}", quote(index.native()), what));
  };
  auto const json = read_json(index);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    fail("has no \"weight_map\" from tensors to files");
  std::set<std::string> names;
  for (auto const& [tensor, file] : json["weight_map"].items()) {
    if (!file.is_string()) fail(fmt::format("gives tensor {} no file name", quote(tensor)));
    names.insert(file.get<std::string>());
  }
  for (std::string const& file : names) {
    // A downloaded index must not reach files outside its folder.
    if (file.find('/') != file.npos || !file.ends_with(kEnding))
      fail(fmt::format("names {}; allowed are *.safetensors files beside it", quote(file)));
    add(folder_ / file);
  }
  for (auto const& [tensor, file] : json["weight_map"].items())
    if (!contains(tensor)) fail(fmt::format("promises tensor {}, which {} does not hold", quote(tensor), file.dump()));
}

StoredTensor const& Checkpoint::at(std::string_view name) const {
  auto const found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  std::vector<std::string_view> names;
  for (auto const& entry : tensors_) names.push_back(entry.first);
  std::ranges::stable_sort(names, std::greater(), [&](std::string_view other) { return likeness(name, other); });
  std::string known;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 3); ++i) known += (i ? ", " : "") + quote(names[i]);
  throw Error(ErrorKind::kInvalid, fmt::format("{} has no tensor {}; of its {} tensors the most alike are: {}",
                                               quote(path_.native()), quote(name), tensors_.size(), known));
}

Tensor Checkpoint::tensor(std::string_view name) const {
  StoredTensor const& stored = at(name);
  if (!stored.readable())
    throw Error(ErrorKind::kUnsupported,
                fmt::format("tensor {} is {}; FLUX reads F64, F32, F16 and BF16", quote(name), stored.describe()));
  return stored.tensor();
}

}  // namespace flux
