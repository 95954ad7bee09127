#pragma once
// Which row of the table: a first, simple cost. Pure, for planner and launcher alike.
#include <cmath>

#include "engine/sm80/config.h"

namespace flux::sm80 {

/// Cycles that m x n x k take with this row: waves of tiles, each tile its products and what it costs beside them, two
/// blocks of a processor sharing its tensor cores; or the time that the operands take from memory, if that is more.
inline double cost(Config const& config, int64_t m, int64_t n, int64_t k, Chip const& chip) {
  constexpr double kProductsACycle = 1024;  // of one processor, 16-bit operands
  constexpr double kBytesACycle = 12;       // from memory, for each processor
  constexpr double kTile = 3000;            // prologue and epilogue: nothing hides them but another block
  constexpr double kHidden = 0.5;           // of that, by the other block
  constexpr double kNarrow = 0.07;          // tiles below 128 x 256 read more operand bytes for each product
  constexpr double kAlone = 0.06;           // four warps alone on a processor wait for shared memory
  constexpr double kShortStep = 0.03;       // all warps meet once a step
  auto up = [](int64_t a, int64_t b) { return static_cast<double>((a + b - 1) / b); };

  int const together = blocks_of_processor(config, chip.shared_bytes);
  double const area = double{1} * config.block_m * config.block_n;
  double const tiles = up(m, config.block_m) * up(n, config.block_n);
  // Blocks spread over the processors before they share them.
  double const waves = std::ceil(tiles / chip.processors), share = std::min<double>(together, waves);
  double tile = up(k, config.block_k) * config.block_k * area / kProductsACycle;
  tile *= 1 + kNarrow * std::max(0.0, std::log2(128.0 * 256.0 / area));
  if (config.threads() <= 128 && share < 2) tile *= 1 + kAlone;
  if (config.block_k < 64) tile *= 1 + kShortStep;
  tile += share > 1 ? kTile * (1 - kHidden) : kTile;
  double const memory = 2.0 * (m + n) * k / (kBytesACycle * chip.processors);
  return std::max(waves * tile, memory + kTile);
}

}  // namespace flux::sm80
