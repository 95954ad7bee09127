#pragma once
#include <string>
#include <string_view>

#include "trace/lanes.h"

namespace flux {

/// How times lie on the picture.
struct TimeAxis {
  double left = 0, right = 0;  ///< pixels
  int64_t begin_ns = 0;        ///< at `left`
  double pixels_per_ns = 0;

  double x(int64_t ns) const { return left + static_cast<double>(ns - begin_ns) * pixels_per_ns; }
  double width(Span const& span) const { return static_cast<double>(span.end_ns - span.begin_ns) * pixels_per_ns; }
};

struct TimeUnit {
  std::string_view name;
  double ns;
};
TimeUnit unit_for(int64_t duration_ns);  ///< in which it reads well

/// A lane's spans as SVG, from y = 0 to `height`. What is wider than a pixel is drawn as it is, and narrow spans beside
/// it too. Pixel columns that hold narrow spans alone are filled from below with what took place in them, each kind as
/// high as its share of the time; so the picture stays small whatever the number of spans.
std::string draw_spans(Lane const& lane, TimeAxis const& axis, double height);

}  // namespace flux
