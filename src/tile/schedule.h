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
    uint32_t const tiles_m = this->tiles_m(r), top = b * band;
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

  FLUX_HD constexpr uint32_t tiles_m(Run const& r) const {
    return static_cast<uint32_t>(quotient(r.rows + block_m - 1, block_m));
  }

  /// Rows for the last run, where they lie right behind it and it is lower than `least` tile rows, or else for a new
  /// one.
  constexpr void append(int64_t row, int64_t rows, int least = 0) {
    Run* last = runs > 0 ? &run[runs - 1] : nullptr;
    if (!last || last->row + last->rows != row || last->rows >= int64_t{1} * least * block_m) {
      last = &run[runs++];
      last->row = row, last->rows = 0;
    }
    last->rows += rows;
    run[runs].start = last->start + int64_t{1} * tiles_m(*last) * tiles_n;
  }
};

/// Every `stride`-th tile of a schedule from the `first` on, the same as schedule[first + i * stride]. It divides once
/// a run, not once a tile: a worker's next tile is then no burden to its single threads.
class Walk {
 public:
  FLUX_HD constexpr Walk(Schedule const& schedule, int64_t first, int64_t stride)
      : schedule_(schedule), stride_(static_cast<uint32_t>(stride)), index_(static_cast<uint32_t>(first)) {
    locate();
  }

  FLUX_HD constexpr explicit operator bool() const { return index_ < schedule_.size(); }
  FLUX_HD constexpr Tile operator*() const {
    Schedule::Run const& r = schedule_.run[run_];
    int64_t const offset = static_cast<int64_t>(top_ + m_) * schedule_.block_m, left = r.rows - offset;
    return {r.row + offset, static_cast<int>(left < schedule_.block_m ? left : schedule_.block_m),
            static_cast<int>(n_)};
  }
  FLUX_HD constexpr void operator++() {
    index_ += stride_, n_ += across_, m_ += down_;
    if (m_ >= height_) m_ -= height_, ++n_;
    uint32_t const columns = static_cast<uint32_t>(schedule_.tiles_n), band = static_cast<uint32_t>(schedule_.band);
    while (n_ >= columns) {
      n_ -= columns, top_ += band;
      if (top_ + band > tiles_m_) return locate();  // the last band of a run may be lower
    }
  }

 private:
  FLUX_HD constexpr void locate() {
    if (!*this) return;
    while (index_ >= schedule_.run[run_ + 1].start) ++run_;
    Schedule::Run const& r = schedule_.run[run_];
    uint32_t const j = index_ - static_cast<uint32_t>(r.start), band = static_cast<uint32_t>(schedule_.band);
    uint32_t const per_band = band * static_cast<uint32_t>(schedule_.tiles_n), above = j / per_band;
    tiles_m_ = schedule_.tiles_m(r), top_ = above * band;
    height_ = tiles_m_ - top_ < band ? tiles_m_ - top_ : band;
    uint32_t const inside = j - above * per_band;
    n_ = inside / height_, m_ = inside - n_ * height_;
    across_ = stride_ / height_, down_ = stride_ - across_ * height_;
  }

  Schedule const& schedule_;
  uint32_t const stride_;
  uint32_t index_;  // tiles of a schedule fit
  int run_ = 0;
  uint32_t tiles_m_ = 0, top_ = 0, height_ = 1, n_ = 0, m_ = 0;  // tile rows; the band; the tile within it
  uint32_t across_ = 0, down_ = 0;                               // a stride, as columns and rows of this band
};

/// How tile rows lie over the shards. `kAcross`: one grid over all rows, tiles may straddle owners and none is wasted.
/// `kWithin`: each shard has a grid of its own, as the relay needs it (two bands of one tile would wait for each other
/// around the ring).
enum class Tiling { kAcross, kWithin };

/// The schedule of rank `rank`. AG visits a straddling tile when the later of its shards has arrived, RS when the
/// earlier of its owners is due. `together`: RS visits the others' shards side by side until they are so many tile rows
/// high. A run of one tile row reads all weights for it alone, and no owner has all its slots before the own shard's
/// turn anyway.
constexpr Schedule arrange(Order order, Tiling tiling, Shards const& shards, int block_m, int tiles_n, int band,
                           int rank, int together = 0) {
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
    int const least = order == Order::kRotated && tiling == Tiling::kAcross && p + 1 < ranks ? together : 0;
    auto close = [&](int64_t end) {
      if (from >= 0) s.append(from, end - from, least);
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
