#include "io/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "io/atomic_file.h"
#include "io/quote.h"
#include "io/safetensors_header.h"
#include "io/shape.h"

namespace flux {
namespace {

constexpr size_t kPrefix = 8;                  // the header's length, little-endian
constexpr uint64_t kMostHeader = 100'000'000;  // bytes; what the format's reference reader allows

struct Word {
  std::string_view word;
  int bits;
  std::optional<DType> dtype;
};
constexpr Word kWords[] = {
    {"F64", 64, DType::kF64},
    {"F32", 32, DType::kF32},
    {"F16", 16, DType::kF16},
    {"BF16", 16, DType::kBF16},
    {"I64", 64, {}},
    {"U64", 64, {}},
    {"I32", 32, {}},
    {"U32", 32, {}},
    {"I16", 16, {}},
    {"U16", 16, {}},
    {"I8", 8, {}},
    {"U8", 8, {}},
    {"BOOL", 8, {}},
    {"F8_E4M3", 8, {}},
    {"F8_E5M2", 8, {}},
    {"F8_E8M0", 8, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"F4", 4, {}},
    {"C64", 64, {}},
};

Word const* find_word(std::string_view text) {
  auto const* const found = std::ranges::find(kWords, text, &Word::word);
  return found == std::end(kWords) ? nullptr : found;
}

std::string_view word_of(DType dtype) {
  if (dtype == DType::kI8) return "I8";  // written, not read: what they stand for is in scales elsewhere
  if (dtype == DType::kF8) return "F8_E4M3";
  return std::ranges::find(kWords, std::optional(dtype), &Word::dtype)->word;
}

StoredTensor check_entry(HeaderEntry const& entry, std::span<std::byte const> data, std::string_view name) {
  auto refuse = [&](std::string const& what) {
    throw Error(ErrorKind::kInvalid, fmt::format("{} has tensor {} {}", quote(name), quote(entry.name), what));
  };
  if (!entry.dtype || !entry.shape || !entry.offsets) refuse("without dtype, shape and data_offsets");
  Word const* const word = find_word(*entry.dtype);
  if (!word) {
    std::vector<std::string_view> words;
    for (Word const& known : kWords) words.push_back(known.word);
    refuse(fmt::format("of dtype {}; allowed are {}", quote(*entry.dtype), fmt::join(words, ", ")));
  }
  if (entry.offsets->size() != 2) refuse("whose data_offsets are no [begin, end]");
  int64_t const begin = (*entry.offsets)[0], end = (*entry.offsets)[1];
  if (begin > end || static_cast<uint64_t>(end) > data.size())
    refuse(fmt::format("at bytes {} to {} of {}; the file is truncated or damaged", begin, end, data.size()));
  StoredTensor tensor{*entry.dtype, *entry.shape, {}};
  auto const elements = checked_product(tensor.shape);
  int64_t bits = 0;
  if (!elements || __builtin_mul_overflow(*elements, word->bits, &bits) || bits % 8 != 0 || bits / 8 != end - begin)
    refuse(fmt::format("said to be {} in {} bytes, which do not agree", tensor.describe(), end - begin));
  tensor.bytes = data.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  return tensor;
}

/// Tensors lie back to back from the first data byte to the last: none overlap, nothing hides between them.
void check_layout(StoredTensors const& tensors, std::span<std::byte const> data, std::string_view name) {
  std::vector<StoredTensors::const_iterator> order;
  for (auto it = tensors.begin(); it != tensors.end(); ++it) order.push_back(it);
  std::ranges::sort(order, {}, [](auto it) { return std::pair(it->second.bytes.data(), it->second.bytes.size()); });
  size_t next = 0;
  for (auto const it : order) {
    auto const begin = static_cast<size_t>(it->second.bytes.data() - data.data());
    if (begin != next)
      throw Error(ErrorKind::kInvalid, fmt::format("{} has tensor {} at byte {} where {} is expected; tensors lie back "
                                                   "to back without overlap or gap",
                                                   quote(name), quote(it->first), begin, next));
    next += it->second.bytes.size();
  }
  if (next != data.size())
    throw Error(ErrorKind::kInvalid, fmt::format("{} has {} bytes of tensors and describes {}; the file is damaged",
                                                 quote(name), data.size(), next));
}

}  // namespace

bool StoredTensor::readable() const {
  Word const* const word = find_word(dtype);
  return word && word->dtype;
}

Tensor StoredTensor::tensor() const {
  if (!readable())
    throw Error(ErrorKind::kUnsupported, fmt::format("{}: FLUX multiplies F64, F32, F16 and BF16 only", describe()));
  auto* const data = const_cast<std::byte*>(bytes.data());
  return matrix(data, *find_word(dtype)->dtype, matrix_rows(shape), matrix_columns(shape));
}

std::string StoredTensor::describe() const { return fmt::format("{} {}", dtype, shape_text(shape)); }

StoredTensors parse_safetensors(std::span<std::byte const> file, std::string_view name) {
  auto fail = [&](std::string const& what) { throw Error(ErrorKind::kInvalid, quote(name) + what); };
  if (file.size() < kPrefix) fail(fmt::format(" has {} bytes, too few for a safetensors file", file.size()));
  uint64_t length = 0;
  for (size_t i = 0; i < kPrefix; ++i) length |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  if (length > kMostHeader || length > file.size() - kPrefix)
    fail(fmt::format(" promises a header of {} bytes and has {} left; it is truncated or no safetensors file", length,
                     file.size() - kPrefix));
  auto const data = file.subspan(kPrefix + length);
  std::string_view const header(reinterpret_cast<char const*>(file.data()) + kPrefix, length);

  StoredTensors tensors;
  read_header(header, name, [&](HeaderEntry const& entry) {
    if (!tensors.emplace(entry.name, check_entry(entry, data, name)).second)
      fail(fmt::format(" has two tensors called {}", quote(entry.name)));
  });
  check_layout(tensors, data, name);
  return tensors;
}

void write_safetensors(std::filesystem::path const& path, std::map<std::string, Tensor> const& tensors) {
  // Wide elements first: then all are aligned, as the header's padding aligns the first.
  std::vector<std::pair<std::string, Tensor>> order(tensors.begin(), tensors.end());
  std::ranges::stable_sort(order, std::greater(), [](auto const& named) { return size_of(named.second.dtype); });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  int64_t offset = 0;
  for (auto const& [key, tensor] : order) {
    auto shape = tensor.rows == 1 ? std::vector{tensor.columns} : std::vector{tensor.rows, tensor.columns};
    header[key] = {{"dtype", word_of(tensor.dtype)},
                   {"shape", std::move(shape)},
                   {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + kPrefix - 1) / kPrefix * kPrefix, ' ');
  std::string prefix;
  for (size_t i = 0; i < kPrefix; ++i) prefix += static_cast<char>(text.size() >> (8 * i) & 0xff);

  AtomicFile file(path);
  file.write(prefix);
  file.write(text);
  for (auto const& named : order) file.write(named.second);
  file.commit();
}

}  // namespace flux
