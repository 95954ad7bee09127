#include "io/model_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "io/json_file.h"
#include "io/quote.h"

namespace flux {
namespace {

/// Under which keys the model families keep it.
constexpr char const* kKeys[] = {"hidden_activation", "hidden_act",   "activation_function",
                                 "activation",        "dense_act_fn", "feed_forward_proj"};

/// The text under `key`, empty if there is none.
std::string text(nlohmann::json const& object, char const* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_string()) return "";
  return object[key].get<std::string>();
}

std::string activation_word(nlohmann::json const& config) {
  // Gemma's first configurations say "gelu" and mean the approximation; Bloom's say nothing.
  std::string const model = text(config, "model_type");
  if (model.starts_with("gemma") || model == "bloom") return "gelu_new";
  for (char const* key : kKeys) {
    std::string const word = text(config, key);
    if (word == "gated-gelu") return "gelu_new";  // T5 means the approximation too
    if (word == "gated-silu") return "silu";
    if (!word.empty()) return word;
  }
  return "";
}

}  // namespace

std::optional<Activation> configured_activation(std::filesystem::path const& folder) {
  std::filesystem::path const path = folder / "config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  auto const config = read_json(path);
  std::string word = activation_word(config);
  // Models of text and pictures keep the language model's in an object of its own.
  if (word.empty() && config.is_object() && config.contains("text_config"))
    word = activation_word(config["text_config"]);
  if (word.empty()) return std::nullopt;
  try {
    return parse_activation(word);
  } catch (Error const& error) {
    throw Error(ErrorKind::kInvalid, fmt::format("{}: {}; or choose one yourself", quote(path.native()), error.what()));
  }
}

}  // namespace flux
