#pragma once
// The tile shapes of the engine for compute capability 8.0 and later. The planner scores the rows, the launcher asks a
// row for threads and shared bytes, a kernel is a row's number. No CUDA here.
#include <algorithm>

#include "engine/tile_row.h"

namespace flux::sm80 {

/// One way to multiply: a block of `warps_m` x `warps_n` warps computes `block_m` x `block_n`, in steps of `block_k`,
/// `stages` of which lie in shared memory.
struct Config {
  int block_m, block_n, block_k, stages, warps_m, warps_n;

  constexpr bool operator==(Config const&) const = default;

  constexpr int threads() const { return 32 * warps_m * warps_n; }
  constexpr int warp_m() const { return block_m / warps_m; }
  constexpr int warp_n() const { return block_n / warps_n; }
  /// Rows of k that all threads ask for at once, 16 bytes each.
  constexpr int rows_at_once() const { return threads() / (block_k / 8); }
  constexpr int stage_bytes() const { return (block_m + block_n) * block_k * 2; }
  /// The finished tile waits where the operands were.
  constexpr int shared_bytes() const { return std::max(stages * stage_bytes(), block_m * block_n * 2); }
  /// Of four warps two blocks share a processor: each hides the other's waits and stores.
  constexpr int blocks_of_processor() const { return threads() <= 128 ? 2 : 1; }
};

inline constexpr Config kTable[] = {
    // What 99 KiB hold, so all chips. Steps of 64 with 64 x 64 a warp would take more registers than there are.
    {256, 128, 32, 4, 4, 2},
    {128, 256, 32, 4, 2, 4},
    {128, 128, 32, 5, 2, 2},
    {256, 64, 32, 4, 4, 1},
    {128, 64, 64, 4, 2, 2},
    {64, 256, 32, 4, 1, 4},
    {64, 128, 64, 4, 2, 2},
    {64, 64, 64, 6, 2, 2},
    // Few rows: nearly all of what is under way are weights, and long steps mean few waits.
    {16, 64, 128, 4, 1, 4},
    {32, 64, 128, 4, 2, 4},
};
inline constexpr int kConfigs = sizeof(kTable) / sizeof(kTable[0]);

constexpr TileRow tile_row(int row) { return {EngineKind::kSm80, row, kTable[row].block_m, kTable[row].block_n, 1}; }

/// Blocks of a row that share a processor, by their shared memory and registers. 0: it holds none.
constexpr int blocks_of_processor(Config const& c, int shared_bytes) {
  return std::min(c.blocks_of_processor(), (shared_bytes + 1024) / (c.shared_bytes() + 1024));
}

}  // namespace flux::sm80
