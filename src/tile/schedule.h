#pragma once
// Which tile comes next. The order in which tiles are visited is the order in which communication can be hidden: rows
// that are here already first (AG), rows that must leave first (RS).
#include "tile/place.h"

namespace flux {

/// A tile of the output: `rows` rows (at most the block's height) from `row` on, and the `n`-th block of columns.
struct Tile {
  int64_t row;
  int rows;
  int n;
  FLUX_HD constexpr Rows range() const { return {row, rows}; }
};

enum class Order {
  kNaive,    // top to bottom, whoever owns it: the paper's "swizzle off"
  kArrival,  // AG: own shard, then r-1, r-2, ... as the pushes of the others arrive
  kRotated,  // RS: r+1, r+2, ..., own shard last, so that at any moment ranks write to different owners
  kRelay,    // RS ring: r-1, r-2, ..., own shard last, so that what the left neighbour sends meets our own part
};

/// Shards in the order in which rank `rank` visits them.
FLUX_HD constexpr int position(Order order, int shard, int rank, int ranks) {
  switch (order) {
    case Order::kNaive: return 0;
    case Order::kArrival: return (rank - shard + ranks) % ranks;
    case Order::kRotated: return (shard - rank - 1 + ranks) % ranks;
    case Order::kRelay: return (rank - 1 - shard + 2 * ranks) % ranks;
  }
  return 0;
}

/// A list of runs of rows. Inside a run tiles go in bands of `band` tile rows, column by column: blocks that work at
/// the same time then share a few rows of A and a few columns of B, and L2 serves the repeats.
struct Schedule {
  struct Run {
    int64_t row, rows;  // global rows
    int64_t start;      // index of its first tile
  };
  static constexpr int kMaxRuns = 2 * kMaxRanks;

  int block_m = 1, tiles_n = 0, band = 1, runs = 0;
  Run run[kMaxRuns + 1] = {};  // run[runs].start is the number of tiles

  FLUX_HD constexpr int64_t size() const { return run[runs].start; }

  /// Tile `i` of the schedule. `hint` remembers the run: callers walk forward.
  FLUX_HD constexpr Tile at(int64_t i, int& hint) const {
    while (i >= run[hint + 1].start) ++hint;
    Run const& r = run[hint];
    uint32_t const j = static_cast<uint32_t>(i - r.start), per_band = static_cast<uint32_t>(band) * tiles_n;
    uint32_t const b = j / per_band, inside = j % per_band;
    uint32_t const tiles_m = static_cast<uint32_t>(quotient(r.rows + block_m - 1, block_m)), top = b * band;
    uint32_t const height = tiles_m - top < static_cast<uint32_t>(band) ? tiles_m - top : band;
    uint32_t const n = inside / height;
    int64_t const offset = static_cast<int64_t>(top + (inside - n * height)) * block_m;
    int64_t const left = r.rows - offset;
    return {r.row + offset, static_cast<int>(left < block_m ? left : block_m), static_cast<int>(n)};
  }
  FLUX_HD constexpr Tile operator[](int64_t i) const {
    int hint = 0;
    return at(i, hint);
  }

  constexpr void append(int64_t row, int64_t rows) {
    int64_t const tiles = (rows + block_m - 1) / block_m * tiles_n;
    run[runs].row = row, run[runs].rows = rows;
    run[runs + 1].start = run[runs].start + tiles;
    ++runs;
  }
};

/// How tile rows lie over the shards. `kAcross`: one grid over all rows, tiles may straddle owners and none is wasted.
/// `kWithin`: each shard has a grid of its own, as the relay needs it (two bands of one tile would wait for each other
/// around the ring).
enum class Tiling { kAcross, kWithin };

/// The schedule of rank `rank`. AG visits a straddling tile when the later of its shards has arrived, RS when the
/// earlier of its owners is due.
constexpr Schedule arrange(Order order, Tiling tiling, Shards const& shards, int block_m, int tiles_n, int band,
                           int rank) {
  Schedule s;
  s.block_m = block_m, s.tiles_n = tiles_n, s.band = band < 1 ? 1 : band;
  int const ranks = shards.ranks;
  if (shards.total == 0 || tiles_n == 0) return s;
  int64_t const tiles_m = (shards.total + block_m - 1) / block_m;
  if (s.band > tiles_m) s.band = static_cast<int>(tiles_m);  // so that band * tiles_n counts tiles that there are
  if (order == Order::kNaive && tiling == Tiling::kAcross) {
    s.append(0, shards.total);
    return s;
  }
  for (int p = 0; p < ranks; ++p) {
    int64_t from = -1;  // consecutive tile rows of position p make one run
    auto close = [&](int64_t end) {
      if (from >= 0) s.append(from, end - from);
      from = -1;
    };
    if (tiling == Tiling::kWithin) {
      for (int shard = 0; shard < ranks; ++shard)
        if ((order == Order::kNaive ? shard : position(order, shard, rank, ranks)) == p && shards.size(shard) > 0)
          s.append(shards.begin(shard), shards.size(shard));
      continue;
    }
    for (int64_t row = 0; row < shards.total;) {
      // Tile rows between two shard boundaries are alike: step over them at once.
      int64_t const last = row + block_m < shards.total ? row + block_m - 1 : shards.total - 1;
      int due = position(order, shards.owner(row), rank, ranks);
      for (int o = shards.owner(row); o <= shards.owner(last); ++o) {
        if (shards.size(o) == 0) continue;
        int const other = position(order, o, rank, ranks);
        due = order == Order::kArrival ? (other > due ? other : due) : (other < due ? other : due);
      }
      int64_t next = last + 1;
      if (shards.owner(row) == shards.owner(last)) {
        int64_t const alike = (shards.begin(shards.owner(row) + 1) - row) / block_m * block_m;
        if (alike > block_m) next = row + alike;
      }
      if (due == p && from < 0) from = row;
      if (due != p) close(row);
      row = next;
    }
    close(shards.total);
  }
  return s;
}

}  // namespace flux
