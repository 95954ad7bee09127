#include "trace/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace flux {
namespace {

using Interval = std::pair<int64_t, int64_t>;

/// The same times without overlaps, in order.
std::vector<Interval> joined(std::vector<Interval> intervals) {
  std::ranges::sort(intervals);
  std::vector<Interval> out;
  for (auto const& [begin, end] : intervals) {
    if (!out.empty() && begin <= out.back().second)
      out.back().second = std::max(out.back().second, end);
    else
      out.emplace_back(begin, end);
  }
  return out;
}

int64_t length(std::vector<Interval> const& intervals) {
  int64_t sum = 0;
  for (auto const& [begin, end] : intervals) sum += end - begin;
  return sum;
}

/// Of two lists of joined intervals, for how long both are on.
int64_t overlap(std::vector<Interval> const& a, std::vector<Interval> const& b) {
  std::vector<Interval> both = a;
  both.insert(both.end(), b.begin(), b.end());
  return length(a) + length(b) - length(joined(std::move(both)));
}

}  // namespace

Lanes lanes_of(Timeline const& timeline) {
  Lanes out;
  std::map<std::pair<int32_t, int32_t>, Lane> lanes;
  for (auto const& entry : timeline.tracks) lanes[entry.first];
  for (Span const& span : timeline.spans) {
    Lane& lane = lanes[{span.rank, span.track}];
    lane.spans.push_back(&span);
    lane.total_ns[static_cast<size_t>(span.kind)] += span.end_ns - span.begin_ns;
  }
  if (!timeline.spans.empty()) {
    out.begin_ns = std::ranges::min(timeline.spans, {}, &Span::begin_ns).begin_ns;
    out.end_ns = std::ranges::max(timeline.spans, {}, &Span::end_ns).end_ns;
  }
  for (auto& [where, lane] : lanes) {
    lane.rank = where.first, lane.track = where.second;
    auto const named = timeline.tracks.find(where);
    lane.name = named != timeline.tracks.end() ? named->second : fmt::format("track {}", where.second);
    std::ranges::stable_sort(lane.spans, {}, &Span::begin_ns);
    out.lanes.push_back(std::move(lane));
  }
  return out;
}

std::string summary(Lanes const& lanes) {
  int64_t workers_ns = 0, maths_ns = 0, wait_ns = 0, copy_ns = 0, hidden_ns = 0;
  std::map<int32_t, std::array<std::vector<Interval>, 2>> by_rank;  // maths, copies
  for (Lane const& lane : lanes.lanes) {
    if (lane.total(SpanKind::kMaths) > 0) workers_ns += lanes.duration_ns();
    maths_ns += lane.total(SpanKind::kMaths), wait_ns += lane.total(SpanKind::kWait);
    for (Span const* span : lane.spans)
      if (span->kind == SpanKind::kMaths || span->kind == SpanKind::kCopy)
        by_rank[lane.rank][span->kind == SpanKind::kCopy].emplace_back(span->begin_ns, span->end_ns);
  }
  for (auto& [rank, kinds] : by_rank) {
    auto const maths = joined(std::move(kinds[0])), copies = joined(std::move(kinds[1]));
    copy_ns += length(copies), hidden_ns += overlap(maths, copies);
  }
  if (workers_ns == 0) return "Nothing was multiplied here.";
  auto percent = [](int64_t part, int64_t whole) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  std::string text = fmt::format("Workers multiply {:.0f} % of the time and wait {:.0f} % of it",
                                 percent(maths_ns, workers_ns), percent(wait_ns, workers_ns));
  if (copy_ns > 0)
    text +=
        fmt::format("; {:.0f} % of the copying happens while the same rank multiplies", percent(hidden_ns, copy_ns));
  return text + ".";
}

std::vector<Release> releases(Timeline const& timeline) {
  std::map<std::pair<int32_t, SpanKind>, std::vector<Span const*>> readers;
  for (Span const& span : timeline.spans)
    if (span.rows > 0 && span.kind != SpanKind::kCopy) readers[{span.rank, span.kind}].push_back(&span);
  for (auto& entry : readers) std::ranges::stable_sort(entry.second, {}, &Span::begin_ns);

  std::vector<Release> out;
  for (Span const& copy : timeline.spans) {
    if (copy.kind != SpanKind::kCopy || copy.rows <= 0) continue;
    auto const found = readers.find({copy.peer < 0 ? copy.rank : copy.peer, copy.feeds});
    if (found == readers.end()) continue;
    auto const& candidates = found->second;
    auto at = std::ranges::lower_bound(candidates, copy.end_ns, {}, &Span::begin_ns);
    auto reads = [&](Span const* s) { return s->row < copy.row + copy.rows && copy.row < s->row + s->rows; };
    at = std::find_if(at, candidates.end(), reads);
    if (at != candidates.end()) out.emplace_back(&copy, *at);
  }
  return out;
}

}  // namespace flux
