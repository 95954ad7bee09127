#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "trace/lanes.h"
#include "trace/trace.h"

namespace flux {
namespace {

std::string text_of(std::string const& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Microseconds with the nanoseconds behind the point.
std::string microseconds(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

}  // namespace

std::string to_chrome_json(Timeline const& timeline) {
  Lanes const lanes = lanes_of(timeline);
  std::string out = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"title\":" + text_of(timeline.title);
  for (auto const& [what, value] : timeline.facts) out += "," + text_of(what) + ":" + text_of(value);
  out += "},\"traceEvents\":[";
  bool first = true;
  auto event = [&](std::string const& text) {
    out += first ? "\n{" : ",\n{";
    out += text, out += "}";
    first = false;
  };
  auto place = [](Span const& span) { return fmt::format("\"pid\":{},\"tid\":{}", span.rank, span.track); };
  auto since = [&](int64_t ns) { return microseconds(ns - lanes.begin_ns); };

  int32_t rank = -1;
  for (Lane const& lane : lanes.lanes) {
    if (lane.rank != rank) {
      rank = lane.rank;
      event(fmt::format(R"("ph":"M","name":"process_name","pid":{0},"args":{{"name":"rank {0}"}})", rank));
      event(fmt::format(R"("ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}})", rank));
    }
    event(fmt::format(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}})", rank, lane.track,
                      text_of(lane.name)));
    event(fmt::format(R"("ph":"M","name":"thread_sort_index","pid":{0},"tid":{1},"args":{{"sort_index":{1}}})", rank,
                      lane.track));
  }
  for (Lane const& lane : lanes.lanes)
    for (Span const* span : lane.spans) {
      std::string args;
      if (span->row >= 0) args = fmt::format(R"("row":{},"rows":{})", span->row, span->rows);
      if (span->n >= 0) args += fmt::format(R"({}"n":{})", args.empty() ? "" : ",", span->n);
      if (span->peer >= 0) args += fmt::format(R"({}"peer":{})", args.empty() ? "" : ",", span->peer);
      event(fmt::format(R"("ph":"X","name":"{0}","cat":"{0}",{1},"ts":{2},"dur":{3},"args":{{{4}}})", name(span->kind),
                        place(*span), since(span->begin_ns), microseconds(span->end_ns - span->begin_ns), args));
    }
  int64_t id = 0;
  for (auto const& [copy, tile] : releases(timeline)) {
    // An arrow starts inside the bar it belongs to, so a nanosecond before its end.
    int64_t const from = std::max(copy->begin_ns, copy->end_ns - 1);
    event(fmt::format(R"("ph":"s","name":"releases","cat":"releases","id":{},{},"ts":{})", id, place(*copy),
                      since(from)));
    event(fmt::format(R"("ph":"f","bp":"e","name":"releases","cat":"releases","id":{},{},"ts":{})", id, place(*tile),
                      since(tile->begin_ns)));
    ++id;
  }
  return out + "\n]}\n";
}

}  // namespace flux
