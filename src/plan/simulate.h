#pragma once
// One call of an operator on all ranks, tile by tile, in simulated time.
#include <optional>

#include "plan/resolve.h"
#include "trace/timeline.h"

namespace flux {

struct Simulation {
  Resolved resolved;
  Parts parts;
  double total_us = 0;
  int64_t tiles = 0;       ///< multiplied, by all ranks
  double moved_bytes = 0;  ///< between ranks
  double busiest_us = 0;   ///< the longest that a way in or out of a rank was busy
  double waited_us = 0;    ///< for rows, a worker of the slowest rank
  double stalled_us = 0;   ///< for the store before, a worker of the slowest rank
  double behind_us = 0;    ///< from the end of the slowest rank's GEMM to the end of the call
  Timeline timeline;       ///< where asked for

  double ect_us() const { return total_us - parts.gemm_us; }
  double floor_us() const { return parts.floor_us(); }
  /// Nothing where communication costs nothing anyway.
  std::optional<double> efficiency() const {
    double const none = parts.none_us - parts.gemm_us;
    return none > 0 ? std::optional(1 - ect_us() / none) : std::nullopt;
  }
};

/// Runs the operator's own schedules, gates and routes (src/tile) against the machine's rates. The same arguments give
/// the same times. Throws as resolve() does. `draw` keeps the timeline.
Simulation simulate(Problem const& problem, Plan const& plan, Machine const& machine, bool draw = false);

}  // namespace flux
