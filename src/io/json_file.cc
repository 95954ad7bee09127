#include "io/json_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "flux/error.h"
#include "io/mapped_file.h"
#include "io/quote.h"

namespace flux {
namespace {

/// How many objects and lists stand inside each other at most. Looked at before parsing: the parser's own callback
/// reads a whole list again at each of its elements.
int depth_of(std::string_view text) {
  int depth = 0, most = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char const c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '{' || c == '['))
      most = std::max(most, ++depth);
    else if (!quoted && (c == '}' || c == ']'))
      --depth;
  }
  return most;
}

}  // namespace

nlohmann::json parse_json(std::string_view text, std::string_view name) {
  using nlohmann::json;
  constexpr size_t kMostBytes = 64 << 20;
  constexpr int kMostDepth = 16;
  auto fail = [&](std::string const& what) {
    throw Error(ErrorKind::kInvalid, fmt::format("{} {}", quote(name), what));
  };
  if (text.size() > kMostBytes) fail(fmt::format("has {} bytes; allowed are {}", text.size(), kMostBytes));
  if (depth_of(text) > kMostDepth) fail(fmt::format("is nested more than {} levels deep", kMostDepth));
  try {
    return json::parse(text);
  } catch (json::parse_error const& error) {
    if (error.byte > text.size()) fail("is no whole JSON: it breaks off at its end, truncated");
    fail(fmt::format("is no JSON from byte {} on", error.byte));
  } catch (json::exception const&) {
    fail("holds a number that is too large");
  }
  return {};
}

nlohmann::json read_json(std::filesystem::path const& path) {
  MappedFile const file(path);
  auto const bytes = file.bytes();
  return parse_json({reinterpret_cast<char const*>(bytes.data()), bytes.size()}, path.native());
}

}  // namespace flux
