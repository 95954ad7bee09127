#pragma once
// The tile shapes of the Hopper engine. The planner scores the rows, the launcher asks a row for threads and shared
// bytes, a kernel is a row's number. No CUDA here.
#include <cstdint>

#include "engine/tile_row.h"
#include "flux/problem.h"

namespace flux::sm90 {

inline constexpr int kSharedBytes = 227 * 1024;  // what one block may have on compute capability 9.0
inline constexpr int kBlockK = 64;               // one 128-byte swizzle row of 2-byte elements

/// One way to multiply. `block_m` x `block_n` is what one block computes; `cluster_m` x `cluster_n` blocks share
/// operand tiles by multicast; or `cluster_k` blocks multiply a part of k each, and each adds up its part of the
/// columns. The maths warpgroups share a tile, each taking rows of it (cooperative), or take turns,
/// one storing while the other multiplies (ping-pong).
struct Config {
  int block_m, block_n;
  // Finished output waits in a ring of `slots` chunks of 64 rows x `chunk_n` columns. 64 columns are swizzled like the
  // operands. Other widths are not: best an odd number of 16-byte units, since the 8 rows that stmatrix writes at a
  // time then start in 8 different bank groups.
  int chunk_n, slots;
  int cluster_m = 1, cluster_n = 1;
  int groups = 2;  // maths warpgroups
  bool ping_pong = false;
  int cluster_k = 1;

  constexpr bool operator==(Config const&) const = default;

  constexpr int cluster() const { return cluster_m * cluster_n * cluster_k; }
  constexpr int tile_m() const { return block_m * cluster_m; }  // rows of a tile of the schedule
  constexpr int tile_n() const { return block_n * cluster_n; }  // weight columns of a tile of the schedule
  constexpr int threads() const { return 128 * (groups + 1); }
  /// Groups that take turns share the staging slots.
  constexpr int rings() const { return ping_pong ? 1 : groups; }
  /// Columns of weights in shared memory: [in,out] weights come in panels of 64.
  constexpr int panel_n(WeightLayout layout) const {
    return layout == WeightLayout::kInOut ? (block_n + 63) / 64 * 64 : block_n;
  }
  /// Columns that a block finishes.
  constexpr int out_n() const { return block_n / cluster_k; }
  constexpr int stage_bytes(WeightLayout layout) const { return (block_m + panel_n(layout)) * kBlockK * 2; }
  constexpr int staging_bytes() const { return rings() * slots * 64 * chunk_n * 2; }
  /// For the other blocks' parts of what this one adds up.
  constexpr int exchange_bytes() const { return (cluster_k - 1) * block_m * out_n() * 4; }
  /// As many as fit, barriers and bookkeeping left 2 KiB.
  constexpr int stages(WeightLayout layout) const {
    int const fit = (kSharedBytes - 2048 - staging_bytes() - exchange_bytes()) / stage_bytes(layout);
    return fit < 12 ? fit : 12;
  }
  constexpr int shared_bytes(WeightLayout layout) const {
    return stages(layout) * stage_bytes(layout) + staging_bytes() + exchange_bytes() + 2048;
  }
  /// Whether a tile can hold columns of a gate and of its up projection, half and half (and the registers suffice).
  constexpr bool gateable(WeightLayout layout) const {
    return block_n / 2 % chunk_n == 0 && cluster_n == 1 && cluster_k == 1 && !(ping_pong && block_n > 144) &&
           (layout == WeightLayout::kOutIn || block_n % 128 == 0);
  }
  /// Registers of a thread, out of 64512 of a block: the maths need what the accumulators take and some forty.
  constexpr int registers_of_maths() const { return 208; }
  constexpr int registers_beside() const { return 504 - 2 * registers_of_maths(); }
};

inline constexpr Config kTable[] = {
    // cooperative: the widest tiles, the fewest operand bytes
    {128, 256, 64, 2, 2, 1},
    {128, 256, 64, 2, 1, 2},
    {128, 192, 64, 2, 2, 1},
    {128, 224, 56, 2, 2, 1},
    // ping-pong: the epilogue of a tile hides behind the maths of the next
    {128, 128, 64, 4, 2, 1, 2, true},
    {128, 136, 136, 2, 2, 1, 2, true},
    {128, 144, 72, 3, 2, 1, 2, true},
    {128, 152, 152, 2, 2, 1, 2, true},
    {128, 160, 80, 3, 2, 1, 2, true},
    {128, 168, 56, 4, 2, 1, 2, true},
    {128, 176, 88, 3, 2, 1, 2, true},
    // few rows: as many blocks as there are processors, deep pipelines
    {64, 96, 96, 2, 1, 1, 1},
    {64, 64, 64, 2, 1, 1, 1},
    {128, 96, 24, 3, 2, 1},
    // the same, k shared: wider tiles read the rows less often
    {64, 96, 24, 3, 1, 1, 1, false, 2},
    {64, 128, 64, 2, 1, 1, 1, false, 2},
    {128, 96, 24, 3, 1, 1, 2, false, 2},
};
inline constexpr int kConfigs = sizeof(kTable) / sizeof(kTable[0]);

constexpr TileRow tile_row(int row) {
  Config const& c = kTable[row];
  return {EngineKind::kSm90, row, c.tile_m(), c.tile_n(), c.cluster()};
}

}  // namespace flux::sm90
