#include <cmath>
#include <nlohmann/json.hpp>

#include "flux/error.h"
#include "io/json_file.h"
#include "io/mapped_file.h"
#include "io/quote.h"
#include "trace/trace.h"

namespace flux {
namespace {

using Json = nlohmann::json;

[[noreturn]] void fail(std::string_view name, std::string const& what) {
  throw Error(ErrorKind::kInvalid, quote(name) + " " + what);
}

/// A whole number that fits, from `object[key]`.
int32_t whole(Json const& object, char const* key, std::string_view name) {
  auto const found = object.find(key);
  if (found == object.end() || !found->is_number_integer() || *found < 0 || *found > INT32_MAX)
    fail(name, "is no timeline of flux: an event has no whole number for " + quote(key));
  return found->get<int32_t>();
}

int64_t nanoseconds(Json const& event, char const* key, std::string_view name) {
  constexpr double kMostUs = 1e12;  // eleven days
  auto const found = event.find(key);
  if (found == event.end() || !found->is_number() || !(std::abs(found->get<double>()) < kMostUs))
    fail(name, "is no timeline of flux: an event has no time for " + quote(key));
  return std::llround(found->get<double>() * 1000);
}

int64_t optional(Json const& arguments, char const* key) {
  auto const found = arguments.find(key);
  return found != arguments.end() && found->is_number_integer() ? found->get<int64_t>() : -1;
}

SpanKind kind_of(std::string const& text, std::string_view name) {
  for (int i = 0; i < kSpanKinds; ++i)
    if (flux::name(static_cast<SpanKind>(i)) == text) return static_cast<SpanKind>(i);
  fail(name, "is no timeline of flux: it has events named " + quote(text) + "; give what flux --timeline wrote");
}

Span span_of(Json const& event, std::string_view name) {
  Span span;
  span.rank = whole(event, "pid", name), span.track = whole(event, "tid", name);
  span.kind = kind_of(event.value("name", ""), name);
  span.begin_ns = nanoseconds(event, "ts", name);
  span.end_ns = span.begin_ns + nanoseconds(event, "dur", name);
  if (span.end_ns < span.begin_ns) fail(name, "has an event that ends before it begins");
  Json const arguments = event.value("args", Json::object());
  if (!arguments.is_object()) return span;
  span.row = optional(arguments, "row");
  if (span.row >= 0) span.rows = std::max<int64_t>(optional(arguments, "rows"), 0);
  span.n = static_cast<int32_t>(optional(arguments, "n")),
  span.peer = static_cast<int32_t>(optional(arguments, "peer"));
  return span;
}

Timeline timeline_of(Json const& json, std::string_view name) {
  if (!json.is_object() || !json.contains("traceEvents") || !json["traceEvents"].is_array())
    fail(name, "is no timeline: it has no list \"traceEvents\"");
  Timeline timeline;
  Json const other = json.value("otherData", Json::object());
  for (auto const& [what, value] : other.items()) {
    if (!value.is_string()) continue;
    if (what == "title")
      timeline.title = value.get<std::string>();
    else
      timeline.facts.emplace_back(what, value.get<std::string>());
  }
  for (Json const& event : json["traceEvents"]) {
    if (!event.is_object()) fail(name, "is no timeline: an event is no object");
    std::string const phase = event.value("ph", "");
    if (phase == "X") timeline.spans.push_back(span_of(event, name));
    if (phase == "M" && event.value("name", "") == "thread_name")
      timeline.tracks[{whole(event, "pid", name), whole(event, "tid", name)}] =
          event.value(Json::json_pointer("/args/name"), "");
  }
  if (timeline.spans.empty()) fail(name, "has no spans; a timeline needs at least one");
  return timeline;
}

}  // namespace

Timeline parse_chrome_json(std::string_view text, std::string_view name) {
  Json const json = parse_json(text, name);
  try {
    return timeline_of(json, name);
  } catch (Json::exception const&) {  // a field of another type than its key says
    fail(name, "is no timeline of flux: a field is of the wrong type");
  }
}

Timeline read_chrome_json(std::filesystem::path const& path) {
  MappedFile const file(path);
  auto const bytes = file.bytes();
  return parse_chrome_json({reinterpret_cast<char const*>(bytes.data()), bytes.size()}, path.native());
}

}  // namespace flux
