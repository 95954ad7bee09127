#include "io/activation.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "flux/error.h"
#include "io/json_file.h"
#include "io/quote.h"

namespace flux {
namespace {

/// Under which keys the model families keep it.
constexpr char const* kKeys[] = {"hidden_activation", "hidden_act",   "activation_function",
                                 "activation",        "dense_act_fn", "feed_forward_proj"};

}  // namespace

std::optional<Activation> configured_activation(std::filesystem::path const& folder) {
  std::filesystem::path const path = folder / "config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  auto const config = read_json(path);
  auto text = [](nlohmann::json const& object, char const* key) -> std::optional<std::string> {
    if (!object.is_object() || !object.contains(key) || !object[key].is_string()) return std::nullopt;
    return object[key].get<std::string>();
  };
  // Gemma's first configurations say "gelu" and mean the approximation; Bloom's say nothing.
  std::string const model = text(config, "model_type").value_or("");
  if (model.starts_with("gemma") || model == "bloom") return Activation::kGeluTanh;
  nlohmann::json const inner = config.is_object() ? config.value("text_config", nlohmann::json()) : nlohmann::json();
  for (auto const* object : {&config, &inner})
    for (char const* key : kKeys)
      if (auto const word = text(*object, key)) {
        try {
          return parse_activation(*word);
        } catch (Error const& error) {
          throw Error(ErrorKind::kInvalid, fmt::format("{}: {}", quote(path.native()), error.what()));
        }
      }
  return std::nullopt;
}

}  // namespace flux
