#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trace/timeline.h"

namespace flux {

/// A worker or copy engine of a rank, and its spans in order of time.
struct Lane {
  int32_t rank = 0, track = 0;
  std::string name;
  std::vector<Span const*> spans;
  std::array<int64_t, kSpanKinds> total_ns = {};  ///< by kind

  int64_t total(SpanKind kind) const { return total_ns[static_cast<size_t>(kind)]; }
};

/// The lanes of a timeline, by rank and track; they point into it.
struct Lanes {
  int64_t begin_ns = 0, end_ns = 0;  ///< from the first span to the end of the last
  std::vector<Lane> lanes;

  int64_t duration_ns() const { return end_ns - begin_ns; }
};
Lanes lanes_of(Timeline const& timeline);

/// What the timeline shows, in one sentence: how much of the time workers multiply and wait, and how much of the
/// copying happens while the same rank multiplies.
std::string summary(Lanes const& lanes);

/// A copy, and the first tile (or sum) at the rank where its rows arrive that reads some of them and begins after it.
using Release = std::pair<Span const*, Span const*>;
std::vector<Release> releases(Timeline const& timeline);

}  // namespace flux
