#pragma once
#include <filesystem>
#include <string_view>

namespace flux {

/// Throws what the operating system said about `path` as one sentence. `action` is what failed ("open", "write"),
/// `error` an errno value. kInvalid where another path would do (missing, forbidden, a folder), else kDevice.
[[noreturn]] void throw_file_error(std::filesystem::path const& path, std::string_view action, int error);

}  // namespace flux
