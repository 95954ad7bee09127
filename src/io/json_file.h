#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

namespace flux {

/// Parses JSON that anybody may have written: at most 64 MiB and 16 levels deep. `name` stands for its file in
/// messages. Throws Error{kInvalid}, one sentence; whether the text breaks off too early is said.
nlohmann::json parse_json(std::string_view text, std::string_view name);

/// The same for a file.
nlohmann::json read_json(std::filesystem::path const& path);

}  // namespace flux
