#pragma once
#include <filesystem>
#include <optional>
#include <string_view>

namespace flux {

/// What stands between the two multiplications of an MLP.
enum class Activation {
  kRelu,
  kGelu,       ///< x * Phi(x), by erf
  kGeluTanh,   ///< its approximation by tanh
  kQuickGelu,  ///< x * sigmoid(1.702 x)
  kSilu,       ///< x * sigmoid(x)
};

std::string_view name(Activation activation);  ///< "relu", "gelu", "gelu_tanh", "quick_gelu", "silu"

/// Takes those names and the Hugging Face words for them ("gelu_new", "gelu_pytorch_tanh", "swish", ...). Throws
/// Error{kInvalid} naming the allowed ones.
Activation parse_activation(std::string_view text);

/// The activation that a Hugging Face `config.json` in `folder` names; nothing if there is no such file or it names
/// none. Throws Error{kInvalid} if the file is damaged or names one that FLUX does not have.
std::optional<Activation> configured_activation(std::filesystem::path const& folder);

}  // namespace flux
