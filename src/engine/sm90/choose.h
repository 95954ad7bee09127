#pragma once
// Which row of the table: a first, simple cost. Pure, for planner and launcher alike. The constants are fitted to a
// sweep of all rows over the core workloads and decoding; there the choice costs 0.3 % and nothing against the best row
// of each problem.
#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/sm90/config.h"

namespace flux::sm90 {

/// Cycles that m x n x k take on `processors` with this row: waves of tiles, each tile its products and what it costs
/// beside them; or the time that the operands take from memory, if that is more.
inline double cost(Config const& config, int64_t m, int64_t n, int64_t k, int processors) {
  constexpr double kProductsACycle = 2048;   // of one processor, 16-bit operands
  constexpr double kLeastStep = 500;         // of a k step, however small
  constexpr double kBytesACycle = 18;        // from memory, for each processor
  constexpr double kCooperativeTile = 2000;  // the tensor cores wait while a tile is stored
  constexpr double kPingPongTile = 300;
  constexpr double kExchange = 1000;  // of what blocks that share k have added up
  constexpr double kNarrow = 0.04;    // narrow ping-pong tiles read more operand bytes for each product
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
  return std::max(maths, memory + tile / steps);
}

/// The cheapest of the rows whose tile is `tile_m` x `tile_n`, which several may have, with k shared or not; 0 x 0: of
/// all. Nothing where the table has no such tile. `n` counts gate and up where gated.
inline std::optional<Choice> choose_of(int tile_m, int tile_n, TiledRows m, int64_t n, int64_t k, WeightLayout layout,
                                       bool gated, int processors) {
  constexpr double kUnhidden = 2;     // what cannot hide weighs more than what may
  constexpr double kOddWidth = 0.12;  // column-major weights are read more slowly in an odd number of 8 columns
  std::optional<Choice> best;
  for (int row = 0; row < kConfigs; ++row) {
    Config const& config = kTable[row];
    if (gated && !config.gateable(layout)) continue;
    if (tile_m > 0 && (config.tile_m() != tile_m || config.tile_n() != tile_n)) continue;
    bool const odd = layout == WeightLayout::kInOut && config.block_n % 16 != 0;
    double c = cost(config, m.rows, n, k, processors);
    if (m.again > 0) c += kUnhidden * cost(config, m.again, n, k, processors);
    if (odd) c *= 1 + kOddWidth;
    if (!best || c < best->cost) best = Choice{tile_row(row), Choice{}.band, c};
  }
  return best;
}

}  // namespace flux::sm90
