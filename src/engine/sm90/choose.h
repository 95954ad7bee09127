#pragma once
// Which row of the table: a first, simple cost. Pure, for planner and launcher alike.
#include "engine/sm90/config.h"

namespace flux::sm90 {

struct Choice {
  int row = 0;
  int band = 4;    // of the schedule
  double cost = 0;  // cycles of one processor
};

/// Cycles that m x n x k take on `processors` with this row: whole waves of tiles, each with its share of what a tile
/// costs beside its products.
double cost(Config const& config, int64_t m, int64_t n, int64_t k, WeightLayout layout, int processors);

/// The cheapest row. `n` counts gate and up where gated.
Choice choose(int64_t m, int64_t n, int64_t k, WeightLayout layout, bool gated, int processors);

}  // namespace flux::sm90
