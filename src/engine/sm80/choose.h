#pragma once
// Which row of the table: a first, simple cost. Pure, for planner and launcher alike. The constants are fitted to a
// sweep of all rows over the core workloads of 1024 rows and more on one H200, by mma.sync; there the choice costs
// 0.7 % on average against the best row of each problem, and 15 % in one (2048 x 4608 x 12288). Of 1 to 256 rows it
// takes the best but in three of 18, by up to 9 %.
#include <iterator>

#include "engine/sm80/config.h"

namespace flux::sm80 {

/// Cycles that m x n x k take with a row of the table: waves of tiles, two blocks of a processor sharing its tensor
/// cores and hiding each other's prologue and epilogue; or the time that the operands take from memory, if that is
/// more.
inline double cost(int row, int64_t m, int64_t n, int64_t k, Chip const& chip) {
  // Of those products; small tiles read more, and of few rows the weights' way decides.
  constexpr double kPace[] = {1, 0.93, 0.90, 0.88, 0.84, 0.82, 0.88, 0.73, 0.22, 0.32};
  static_assert(std::size(kPace) == kConfigs);
  constexpr double kTile = 4700, kPair = 6300;  // prologue and epilogue of a block, and of two side by side
  constexpr double kAlone = 1.3;                // four warps alone on a processor wait for shared memory
  constexpr double kPartWave = 0.2;  // how much of a part-filled wave's idle processors the others gain, in clock rate
  auto up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };

  Config const& config = kTable[row];
  double const tile = static_cast<double>(up(k, config.block_k) * config.block_k) * config.block_m * config.block_n /
                      (chip.products * kPace[row]);
  double const alone = tile * (config.threads() <= 128 ? kAlone : 1) + kTile;
  bool const pairs = blocks_of_processor(config, chip.shared_bytes) > 1;
  double const wave = pairs ? 2 * tile + kPair : alone;
  int64_t const tiles = up(m, config.block_m) * up(n, config.block_n);
  int64_t const processors = chip.processors, left = tiles % (pairs ? 2 * processors : processors);
  int64_t const waves = tiles / (pairs ? 2 * processors : processors);
  // Blocks spread over the processors before they share them.
  bool const share = pairs && left > processors;
  double const filled = static_cast<double>(left) / static_cast<double>(share ? 2 * processors : processors);
  double const last = left == 0 ? 0 : (share ? wave : alone) * (kPartWave * filled + 1 - kPartWave);
  double const memory = 2.0 * static_cast<double>((m + n) * k) / (chip.bytes * chip.processors);
  return std::max(static_cast<double>(waves) * wave + last, memory + kTile);
}

}  // namespace flux::sm80
