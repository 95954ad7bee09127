#pragma once
// A row of an engine's table of tile shapes, as schedules, launches and the planner see it. No CUDA here.
#include <cstdint>

namespace flux {

/// What multiplies: compute capability 9.0 by TMA and WGMMA, any from 8.0 on by cp.async and mma.sync, or the host.
enum class EngineKind { kSm90, kSm80, kHost };

struct TileRow {
  EngineKind engine = EngineKind::kSm90;
  int row = -1;
  int tile_m = 0, tile_n = 0;  ///< of a tile of the schedule (gated: gate and up columns)
  int cluster = 1;             ///< blocks that work on one

  constexpr bool operator==(TileRow const&) const = default;
  /// Columns of tiles that a schedule has.
  constexpr int tiles_n(int64_t n) const { return static_cast<int>((n + tile_n - 1) / tile_n); }
  /// Announcer::tiles_n: every block of a cluster counts for itself.
  constexpr int announcements(int64_t n) const { return tiles_n(n) * cluster; }
};

/// For how many rows tiles are chosen: by what all of them cost, and, weighed more, the `again` of them that cannot
/// hide behind communication.
struct TiledRows {
  int64_t rows = 0, again = 0;
};

/// What the choice of a tile depends on.
struct Chip {
  EngineKind engine = EngineKind::kSm90;
  int processors = 0;
  int shared_bytes = 227 * 1024;  ///< that one block may have; a processor has 1 KiB more, and each block takes that
  double products = 1024;         ///< multiply-adds a cycle and processor by mma.sync, 16-bit operands
  double bytes = 18;              ///< a cycle and processor, from memory
  bool fp8 = true;                ///< from compute capability 8.9 on
};

struct Choice {
  TileRow tile;
  int band = 8;     ///< of the schedule
  double cost = 0;  ///< cycles
};

}  // namespace flux
