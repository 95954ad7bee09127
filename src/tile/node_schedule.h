#pragma once
// The order of tiles where ranks are on several nodes. What other nodes send comes along all rails at once, so the
// parts of a node's shards take turns: the first part of each, then the second. The same way round partial sums leave.
#include "tile/schedule.h"

namespace flux {

/// Rows in the order of their turns.
struct Turns {
  Rows part[Schedule::kMaxRuns] = {};
  int count = 0;
  constexpr void add(int64_t first, int64_t rows) {
    if (rows > 0) part[count++] = {first, rows};
  }
};

/// The shards of other nodes, nearest first in the direction of `step` (AG: -1, as they arrive; RS: +1), each node's in
/// parts of whole `grain` rows that take turns, as many as a schedule has runs for.
constexpr void add_other_nodes(Turns& turns, Shards const& shards, int node_ranks, int64_t grain, int rank, int step) {
  int const nodes = shards.ranks / node_ranks, node = rank / node_ranks, position = rank % node_ranks;
  int const others = shards.ranks - node_ranks;
  if (others == 0) return;
  int64_t const grains = (shards.largest() + grain - 1) / grain;
  int64_t const parts = (Schedule::kMaxRuns - node_ranks) / others, height = (grains + parts - 1) / parts * grain;
  for (int d = 1; d < nodes; ++d)
    for (int64_t begin = 0; begin < shards.largest(); begin += height)
      for (int i = 0; i < node_ranks; ++i) {
        int const other = (node + step * d + nodes) % nodes, place = (position + step * i + node_ranks) % node_ranks;
        int const shard = other * node_ranks + place;
        int64_t const left = shards.size(shard) - begin;
        turns.add(shards.begin(shard) + begin, left < height ? left : height);
      }
}

/// AG: own shard, those of the own node as they arrive, then the other nodes'.
constexpr Turns turns_of_gather(Shards const& shards, int node_ranks, int64_t comm_rows, int rank) {
  Turns turns;
  int const first = rank / node_ranks * node_ranks;
  for (int i = 0; i < node_ranks; ++i) {
    int const shard = first + (rank - first - i + node_ranks) % node_ranks;
    turns.add(shards.begin(shard), shards.size(shard));
  }
  add_other_nodes(turns, shards, node_ranks, comm_rows, rank, -1);
  return turns;
}

/// RS: rows of other nodes, whose sums have the longest way; then the own node's, own rows last.
constexpr Turns turns_of_sums(Shards const& shards, int node_ranks, int64_t band_rows, int rank) {
  Turns turns;
  add_other_nodes(turns, shards, node_ranks, band_rows, rank, +1);
  int const first = rank / node_ranks * node_ranks;
  for (int i = 1; i <= node_ranks; ++i) {
    int const shard = first + (rank - first + i) % node_ranks;
    turns.add(shards.begin(shard), shards.size(shard));
  }
  return turns;
}

/// One grid of tiles over all rows, visited by turns. A tile row of several parts is visited with the last of them (AG:
/// all of its rows are needed) or with the first.
constexpr Schedule arrange(Turns const& turns, bool with_last, int64_t m, int block_m, int tiles_n, int band) {
  Schedule s;
  s.block_m = block_m;
  int64_t const tiles_m = (m + block_m - 1) / block_m;
  s.band = static_cast<int>(band < 1 ? 1 : band < tiles_m ? band : tiles_m);
  if (m == 0 || tiles_n == 0) return s;
  s.tiles_n = tiles_n;
  auto is_due = [&](int64_t tile_row, int turn) {
    int64_t const begin = tile_row * block_m, end = begin + block_m;
    for (int t = with_last ? turn + 1 : 0; t < (with_last ? turns.count : turn); ++t)
      if (turns.part[t].first < end && turns.part[t].end() > begin) return false;
    return true;
  };
  for (int t = 0; t < turns.count; ++t) {
    int64_t from = turns.part[t].first / block_m, to = (turns.part[t].end() + block_m - 1) / block_m;
    if (from < to && !is_due(from, t)) ++from;  // inside, tile rows are of this part alone
    if (from < to && !is_due(to - 1, t)) --to;
    if (from < to) s.append(from * block_m, (to * block_m < m ? to * block_m : m) - from * block_m);
  }
  return s;
}

}  // namespace flux
