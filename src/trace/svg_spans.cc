#include "trace/svg_spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <vector>

namespace flux {
namespace {

/// For each pixel column of the picture, the part of it that each kind takes.
using Shares = std::vector<std::array<double, kSpanKinds>>;
/// The bars of each kind, as one SVG path.
using Paths = std::array<std::string, kSpanKinds>;

/// Calls f(column, part of it) for each pixel column that the span reaches into.
template <class F>
void each_column(Span const& span, TimeAxis const& axis, F&& f) {
  double const begin = axis.x(span.begin_ns) - axis.left, end = begin + axis.width(span);
  for (double c = std::floor(begin); c < end && c < axis.right - axis.left; ++c)
    f(static_cast<size_t>(c), std::min(end, c + 1) - std::max(begin, c));
}

std::string describe(Span const& span) {
  TimeUnit const unit = unit_for(span.end_ns - span.begin_ns);
  std::string words{name(span.kind)};
  if (span.row >= 0) words += fmt::format(", rows {} to {}", span.row, span.row + span.rows - 1);
  if (span.n >= 0) words += fmt::format(", block {} of columns", span.n);
  if (span.peer >= 0) words += fmt::format(", rank {}", span.peer);
  return words + fmt::format(": {:.4g} {}", static_cast<double>(span.end_ns - span.begin_ns) / unit.ns, unit.name);
}

/// A bar that says what it is when pointed at.
void draw_named(std::string& out, Span const& span, TimeAxis const& axis, double height) {
  double const width = axis.width(span), gap = width > 4 ? 0.6 : 0;  // neighbours of one kind stay apart
  double const over = span.kind == SpanKind::kStep ? 1 : 0;          // an operation is drawn around its parts
  fmt::format_to(
      std::back_inserter(out),
      "<rect class=\"{}\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{:.1f}\"><title>{}</title></rect>\n",
      name(span.kind), axis.x(span.begin_ns), -over, width - gap, height + 2 * over, describe(span));
}

void add_bar(std::string& path, double x, double y, double width, double height) {
  fmt::format_to(std::back_inserter(path), "M{:.6g} {:.4g}h{:.3g}v{:.4g}h-{:.3g}z", x, y, width, height, width);
}

/// Fills columns from below. Equal neighbours become one bar.
void stack(Paths& paths, Shares const& shares, TimeAxis const& axis, double height) {
  constexpr int kSteps = 12;  // of height: coarse, so that neighbours are often equal
  constexpr std::array kUpward = {SpanKind::kMaths, SpanKind::kSum, SpanKind::kStore, SpanKind::kCopy, SpanKind::kWait};
  auto tops = [&](size_t column) {
    std::array<int, kUpward.size()> steps{};
    double sum = 0;
    for (size_t i = 0; i < kUpward.size(); ++i) {
      sum += shares[column][static_cast<size_t>(kUpward[i])];
      steps[i] = static_cast<int>(std::lround(std::min(sum, 1.0) * kSteps));
    }
    return steps;
  };
  for (size_t from = 0, to = 0; from < shares.size(); from = to) {
    auto const steps = tops(from);
    for (to = from + 1; to < shares.size() && tops(to) == steps;) ++to;
    int below = 0;
    for (size_t i = 0; i < kUpward.size(); below = steps[i++])
      if (steps[i] > below)
        add_bar(paths[static_cast<size_t>(kUpward[i])], axis.left + static_cast<double>(from),
                height * (kSteps - steps[i]) / kSteps, static_cast<double>(to - from),
                height * (steps[i] - below) / kSteps);
  }
}

}  // namespace

TimeUnit unit_for(int64_t duration_ns) {
  if (duration_ns < 3'000) return {"ns", 1};
  if (duration_ns < 3'000'000) return {"µs", 1e3};
  if (duration_ns < 3'000'000'000) return {"ms", 1e6};
  return {"s", 1e9};
}

std::string draw_spans(Lane const& lane, TimeAxis const& axis, double height) {
  constexpr double kNamed = 3, kWide = 1, kHardly = 0.1;  // pixels
  auto const columns = static_cast<size_t>(axis.right - axis.left);
  std::vector<char> exact(columns);
  for (Span const* span : lane.spans)
    if (axis.width(*span) >= kWide && span->kind != SpanKind::kStep)
      each_column(*span, axis, [&](size_t column, double part) { exact[column] |= part > 0.02; });

  std::string out;
  Paths paths;
  Shares shares(columns);
  for (Span const* span : lane.spans) {
    auto const kind = static_cast<size_t>(span->kind);
    double const width = axis.width(*span);
    if (width >= kNamed || span->kind == SpanKind::kStep) {
      draw_named(out, *span, axis, height);
      continue;
    }
    bool drawn = width >= kWide;
    each_column(*span, axis, [&](size_t column, double part) {
      drawn |= exact[column] && width >= kHardly;
      if (!exact[column]) shares[column][kind] += part;
    });
    if (drawn) add_bar(paths[kind], axis.x(span->begin_ns), 0, width, height);
  }
  stack(paths, shares, axis, height);
  for (size_t k = 0; k < kSpanKinds; ++k)
    if (!paths[k].empty())
      fmt::format_to(std::back_inserter(out), "<path class=\"{}\" d=\"{}\"/>\n", name(static_cast<SpanKind>(k)),
                     paths[k]);
  return out;
}

}  // namespace flux
