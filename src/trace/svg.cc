#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "trace/lanes.h"
#include "trace/svg_spans.h"
#include "trace/svg_style.h"
#include "trace/trace.h"

namespace flux {
namespace {

constexpr double kWidth = 1200, kLeft = 168, kRight = 1104, kMargin = 28;

/// Where things stand, from the number of lanes: few lanes are high, many are low.
struct Layout {
  double lane_height, lane_gap, rank_gap;
};
Layout layout_for(size_t lanes) {
  double const height = std::clamp(520.0 / static_cast<double>(std::max<size_t>(lanes, 1)), 7.0, 30.0);
  return {height, height > 12 ? 4.0 : 2.0, height > 12 ? 12.0 : 6.0};
}

/// The step of a time axis: 1, 2 or 5 times a power of ten, for about eight ticks.
int64_t tick_step(int64_t duration_ns) {
  int64_t step = 1;
  for (int i = 0; duration_ns / step > 9; ++i) step = i % 3 == 1 ? step / 2 * 5 : step * 2;
  return step;
}

class Picture {
 public:
  explicit Picture(Timeline const& timeline) : timeline_(timeline), lanes_(lanes_of(timeline)) {
    layout_ = layout_for(lanes_.lanes.size());
    axis_ = {kLeft, kRight, lanes_.begin_ns,
             (kRight - kLeft) / static_cast<double>(std::max<int64_t>(lanes_.duration_ns(), 1))};
  }

  std::string draw() {
    head();
    legend();
    double const top = y_ + 8;
    std::string body;
    std::swap(body, out_);
    lanes(top);
    std::swap(body, out_);
    axis(top);  // its lines lie under the lanes
    out_ += body;
    y_ += 44;
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" viewBox=\"0 0 {0} "
        "{1:.0f}\" role=\"img\">\n<title>{2}</title>\n{3}<rect class=\"paper\" width=\"100%\" "
        "height=\"100%\"/>\n{4}</svg>\n",
        kWidth, y_, escape(timeline_.title), style(), out_);
  }

 private:
  void text(std::string_view kind, double x, double y, std::string_view words) {
    fmt::format_to(std::back_inserter(out_), "<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kind, x, y,
                   escape(words));
  }

  void head() {
    y_ = 44;
    for (auto const& line : wrap(timeline_.title.empty() ? "Timeline" : timeline_.title, 90)) {
      text("title", kMargin, y_, line);
      y_ += 26;
    }
    for (auto const& line : wrap(summary(lanes_), 150)) {
      text("summary", kMargin, y_, line);
      y_ += 20;
    }
    std::string facts;
    for (auto const& [what, value] : timeline_.facts) facts += (facts.empty() ? "" : "  ·  ") + what + ": " + value;
    for (auto const& line : wrap(facts, 165)) {
      text("fact", kMargin, y_, line);
      y_ += 18;
    }
  }

  void legend() {
    y_ += 12;
    double at = kLeft;
    for (size_t kind = 0; kind < kSpanKinds; ++kind) {
      bool const seen = std::ranges::any_of(lanes_.lanes, [&](Lane const& lane) { return lane.total_ns[kind] > 0; });
      if (!seen) continue;
      fmt::format_to(std::back_inserter(out_),
                     "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"26\" height=\"13\" rx=\"2\"/>\n",
                     name(static_cast<SpanKind>(kind)), at, y_ - 11);
      auto const words = meaning(static_cast<SpanKind>(kind));
      text("legend", at + 33, y_, words);
      at += 33 + 6.9 * static_cast<double>(words.size()) + 24;
    }
    y_ += 10;
  }

  void lanes(double top) {
    y_ = top;
    int32_t rank = -1;
    double rank_top = y_;
    auto label_rank = [&] {
      if (rank >= 0) text("rank", kMargin, (rank_top + y_ - layout_.lane_gap) / 2 + 4.5, fmt::format("rank {}", rank));
    };
    for (Lane const& lane : lanes_.lanes) {
      if (lane.rank != rank) {
        label_rank();
        if (rank >= 0) y_ += layout_.rank_gap;
        rank = lane.rank, rank_top = y_;
      }
      draw_lane(lane);
      y_ += layout_.lane_height + layout_.lane_gap;
    }
    label_rank();
  }

  void draw_lane(Lane const& lane) {
    double const middle = y_ + layout_.lane_height / 2 + 3.5;
    if (layout_.lane_height >= 9) text("lane", kLeft - 10, middle, lane.name);
    SpanKind const main = lane.total(SpanKind::kMaths) > 0  ? SpanKind::kMaths
                          : lane.total(SpanKind::kCopy) > 0 ? SpanKind::kCopy
                                                            : SpanKind::kStep;
    if (main != SpanKind::kStep && layout_.lane_height >= 9) {
      double const share = static_cast<double>(lane.total(main)) / static_cast<double>(lanes_.duration_ns());
      text("share", kRight + 8, middle, fmt::format("{:.0f} % {}", 100 * share, name(main)));
    }
    fmt::format_to(
        std::back_inserter(out_),
        "<g transform=\"translate(0 {:.1f})\">\n<rect class=\"idle\" x=\"{}\" width=\"{}\" height=\"{:.1f}\"/>\n", y_,
        kLeft, kRight - kLeft, layout_.lane_height);
    out_ += draw_spans(lane, axis_, layout_.lane_height);
    out_ += "</g>\n";
  }

  void axis(double top) {
    double const bottom = y_ + 2;
    int64_t const duration = lanes_.duration_ns(), step = tick_step(duration);
    TimeUnit const unit = unit_for(duration);
    for (int64_t t = 0; t <= duration; t += step) {
      double const at = axis_.x(lanes_.begin_ns + t);
      fmt::format_to(std::back_inserter(out_),
                     "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n", at,
                     top - 4, bottom + 4);
      text("tick", at, bottom + 18, fmt::format("{:g}", static_cast<double>(t) / unit.ns));
    }
    text("share", kRight + 16, bottom + 18, unit.name);
  }

  Timeline const& timeline_;
  Lanes lanes_;
  Layout layout_;
  TimeAxis axis_;
  double y_ = 0;
  std::string out_;
};

}  // namespace

std::string to_svg(Timeline const& timeline) { return Picture(timeline).draw(); }

}  // namespace flux
