#include "io/json_file.h"

#include <fmt/format.h>

#include "flux/error.h"
#include "io/mapped_file.h"
#include "io/quote.h"

namespace flux {

nlohmann::json parse_json(std::string_view text, std::string_view name) {
  using nlohmann::json;
  constexpr size_t kMostBytes = 64 << 20;
  constexpr int kMostDepth = 16;
  auto fail = [&](std::string const& what) {
    throw Error(ErrorKind::kInvalid, fmt::format("{} {}", quote(name), what));
  };
  if (text.size() > kMostBytes) fail(fmt::format("has {} bytes; allowed are {}", text.size(), kMostBytes));
  auto bound_depth = [&](int depth, json::parse_event_t, json&) {
    if (depth > kMostDepth) fail(fmt::format("is nested more than {} levels deep", kMostDepth));
    return true;
  };
  try {
    return json::parse(text, bound_depth);
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
