#pragma once

#include <string_view>

namespace flux {

/// "major.minor.patch".
std::string_view version();

/// The git commit this library was built from, with "-dirty" if files had changed; "unknown" outside a repository.
std::string_view commit();

}  // namespace flux
