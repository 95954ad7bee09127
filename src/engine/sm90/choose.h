#pragma once
// Which row of the table: a first, simple cost. Pure, for planner and launcher alike. The constants are fitted to a
// sweep of all rows over the core workloads and decoding; there the choice costs 0.3 % and nothing against the best row
// of each problem.
#include <algorithm>
#include <cmath>

#include "engine/sm90/config.h"

namespace flux::sm90 {

/// Cycles that m x n x k take on `processors` with this row: waves of tiles, each tile its products and what it costs
/// beside them; or the time that the operands take from memory, if that is more.
inline double cost(Config const& config, int64_t m, int64_t n, int64_t k, WeightLayout layout, int processors) {
  constexpr double kProductsACycle = 2048;   // of one processor, 16-bit operands
  constexpr double kLeastStep = 500;         // of a k step, however small
  constexpr double kBytesACycle = 18;        // from memory, for each processor
  constexpr double kCooperativeTile = 2000;  // the tensor cores wait while a tile is stored
  constexpr double kPingPongTile = 300;
  constexpr double kExchange = 1000;  // of what blocks that share k have added up
  constexpr double kNarrow = 0.04;    // narrow ping-pong tiles read more operand bytes for each product
  constexpr double kOddWidth = 0.12;  // column-major weights are read more slowly in an odd number of 8 columns
  constexpr double kPartWave = 0.1;   // how much of a part-filled wave's idle processors the others gain, in clock rate
  auto up = [](int64_t a, int64_t b) { return static_cast<double>((a + b - 1) / b); };

  double const products = std::max(kLeastStep, double{kBlockK} * config.block_m * config.block_n / kProductsACycle);
  double const steps = std::ceil(up(k, kBlockK) / config.cluster_k);
  double tile = steps * products;
  if (config.ping_pong) tile *= 1 + kNarrow * std::max(0, 176 - config.block_n) / 176;
  tile += config.ping_pong ? kPingPongTile : kCooperativeTile + kExchange * (config.cluster_k - 1);
  int const clusters = processors / config.cluster();
  double const tiles = up(m, config.tile_m()) * up(n, config.tile_n());
  double const waves = std::max(1.0, tiles / clusters),
               whole = static_cast<double>(static_cast<int64_t>(waves + 0.999999));
  double const maths = (kPartWave * waves + (1 - kPartWave) * whole) * tile;
  double const memory = 2.0 * (m + n) * k / (kBytesACycle * processors);
  bool const odd = layout == WeightLayout::kInOut && config.block_n % 16 != 0;
  return std::max(maths, memory + tile / steps) * (odd ? 1 + kOddWidth : 1);
}

}  // namespace flux::sm90
