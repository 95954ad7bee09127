#include "report/budget.h"

#include <algorithm>

#include "flux/error.h"

namespace flux {
namespace {

struct Interval {
  int64_t begin_ns, end_ns;
};

/// From the first to the last span of these kinds.
std::optional<Interval> extent(Timeline const& timeline, std::initializer_list<SpanKind> kinds) {
  std::optional<Interval> whole;
  for (Span const& span : timeline.spans) {
    if (std::ranges::find(kinds, span.kind) == kinds.end()) continue;
    if (!whole) whole = {span.begin_ns, span.end_ns};
    whole = {std::min(whole->begin_ns, span.begin_ns), std::max(whole->end_ns, span.end_ns)};
  }
  return whole;
}

double us(int64_t from_ns, int64_t to_ns) { return static_cast<double>(to_ns - from_ns) / 1e3; }

}  // namespace

double call_us(Timeline const& timeline) {
  auto const call = extent(timeline, {SpanKind::kStep});
  if (!call) throw Error(ErrorKind::kInvalid, "the timeline has no span of a whole call");
  return us(call->begin_ns, call->end_ns);
}

std::optional<Budget> budget_of(Timeline const& timeline, BudgetTimes const& times) {
  bool const link_bound = times.comm_us >= times.gemm_us;
  auto const call = extent(timeline, {SpanKind::kStep}), sum = extent(timeline, {SpanKind::kSum});
  auto const tiles = extent(timeline, {SpanKind::kMaths, SpanKind::kStore}),
             copies = extent(timeline, {SpanKind::kCopy});
  auto const& longer = link_bound ? copies : tiles;
  if (!call || !tiles || !longer) return {};
  Budget b;
  b.total_us = call_us(timeline);
  b.gemm_us = times.plain_us - times.gemm_us, b.fusion_us = times.open_us - times.plain_us;
  b.head_us = us(call->begin_ns, longer->begin_ns);
  b.traffic_us = us(longer->begin_ns, longer->end_ns) - (link_bound ? times.comm_us : times.open_us);
  int64_t const summed = sum ? std::max(sum->end_ns, longer->end_ns) : longer->end_ns;
  b.sum_us = us(longer->end_ns, summed), b.tail_us = us(summed, call->end_ns);
  return b;
}

void set_budget(ResultRow& row, Budget const& b) {
  row.budget_gemm_us = b.gemm_us, row.budget_fusion_us = b.fusion_us, row.budget_traffic_us = b.traffic_us;
  row.budget_head_us = b.head_us, row.budget_tail_us = b.tail_us, row.budget_sum_us = b.sum_us;
}

}  // namespace flux
