#pragma once
#include <filesystem>
#include <optional>

#include "flux/problem.h"

namespace flux {

/// The activation of the MLPs, as a Hugging Face `config.json` in `folder` names it; nothing if there is no such file
/// or it names none. Throws Error{kInvalid} if the file is damaged or names one that FLUX does not have.
std::optional<Activation> configured_activation(std::filesystem::path const& folder);

}  // namespace flux
