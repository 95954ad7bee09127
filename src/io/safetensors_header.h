#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flux {

/// What a safetensors header says of one tensor, word for word: nothing is checked yet.
struct HeaderEntry {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<int64_t>> shape, offsets;
};

/// Reads the JSON of a header as a stream and hands over each entry as it is complete, so that a hostile header never
/// grows into a tree in memory. `file` stands for the file in messages. Throws Error{kInvalid} if the text is no JSON,
/// is nested more deeply than the format, or has lists of more than 64 or negative or overlarge numbers.
void read_header(std::string_view text, std::string_view file, std::function<void(HeaderEntry const&)> const& take);

}  // namespace flux
