#pragma once
// A gate says where a tile's input rows lie and when they may be read. It holds addresses and signals, never data.
#include "tile/place.h"
#include "tile/schedule.h"

namespace flux {

/// The words of gathered rows, one for each (source, communication tile of its shard, slice of k). Copies and gates
/// index it alike; its size follows from the plan in use.
struct ArrivalWords {
  Shards shards;          // rows of A over the ranks
  Shards slices;          // k over slices
  int64_t comm_rows = 1;  // rows of a communication tile, independent of the GEMM's tile

  FLUX_HD constexpr int tiles() const {
    return static_cast<int>(quotient(shards.largest() + comm_rows - 1, comm_rows));
  }
  FLUX_HD constexpr int64_t size() const { return int64_t{1} * shards.ranks * tiles() * slices.ranks; }
  FLUX_HD constexpr int64_t index(int source, int64_t tile, int slice) const {
    return (int64_t{1} * source * tiles() + tile) * slices.ranks + slice;
  }
};

/// Threads that wait side by side, each for its part: a look at a word takes a GPU a microsecond.
struct Party {
  int index = 0, count = 1;
};

/// A is here.
struct Open {
  int rank = 0;
  int64_t k = 0;
  FLUX_HD constexpr Shards slices() const { return {k, 1, 1}; }
  FLUX_HD Place where(Rows rows) const { return {rank, rows.first, rows.count}; }
  FLUX_HD constexpr bool waits() const { return false; }
  FLUX_HD bool wait(Rows, int, Party = {}) const { return true; }
};

/// Others bring their shards into our gather buffer and set a word for each communication tile; our own rows are there,
/// or lie apart.
struct Arrival {
  int rank = 0;
  ArrivalWords layout;
  Word const* words = nullptr;  // ours
  Word goal = 0;
  Watch watch;
  int own = -1;  // where our shard lies apart: which buffer; then no tile holds rows of ours and of others

  FLUX_HD constexpr Shards slices() const { return layout.slices; }
  FLUX_HD Place where(Rows rows) const {
    int64_t const begin = layout.shards.begin(rank);
    if (own >= 0 && rows.first >= begin && rows.end() <= layout.shards.begin(rank + 1))
      return {own, rows.first - begin, rows.count};
    return {rank, rows.first, rows.count};
  }
  FLUX_HD constexpr bool waits() const { return true; }
  /// All of `rows`, in slice `slice` of k, may be read once this returned true to all of the party.
  FLUX_HD bool wait(Rows rows, int slice, Party party = {}) const {
    if (planted(Bug::kNoWait) || rows.count <= 0) return true;
    int const first = layout.shards.owner(rows.first), last = layout.shards.owner(rows.end() - 1);
    for (int source = first + party.index; source <= last; source += party.count) {
      if (source == rank) continue;
      int64_t const begin = layout.shards.begin(source), end = layout.shards.begin(source + 1);
      int64_t const from = rows.first > begin ? rows.first : begin, to = rows.end() < end ? rows.end() : end;
      for (int64_t t = quotient(from - begin, layout.comm_rows); t * layout.comm_rows < to - begin; ++t)
        if (!await(words + layout.index(source, t, slice), goal, watch, Awaited::kRows, source, from)) return false;
    }
    return true;
  }
};

/// Rows are read where they lie, at their owner: one word a source says that its shard may be read. A tile is one band.
struct Remote {
  int rank = 0;
  Shards shards;
  int64_t k = 0;
  Word const* words = nullptr;  // ours, one a source
  Word goal = 0;
  Watch watch;

  FLUX_HD constexpr Shards slices() const { return {k, 1, 1}; }
  FLUX_HD Place where(Rows rows) const { return shards.band(rows); }
  FLUX_HD constexpr bool waits() const { return true; }
  FLUX_HD bool wait(Rows rows, int, Party party = {}) const {
    int const owner = shards.owner(rows.first);
    return owner == rank || party.index > 0 || await(words + owner, goal, watch, Awaited::kRows, owner, rows.first);
  }
};

}  // namespace flux
