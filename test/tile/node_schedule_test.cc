// The order of tiles over several nodes: each tile once, what is near first (AG) or last (RS).
#include "tile/node_schedule.h"

#include <gtest/gtest.h>

#include <map>

#include "tile/gate.h"

namespace flux::test {
namespace {

struct Size {
  int64_t m;
  int ranks, node_ranks;
};
constexpr Size kSizes[] = {{64, 4, 2}, {67, 4, 2}, {1, 4, 2}, {3, 8, 4},     {129, 16, 8}, {1000, 16, 8},
                           {61, 6, 3}, {61, 6, 2}, {0, 4, 2}, {4096, 16, 4}, {300, 12, 1}, {37, 2, 1}};

template <class F>
void each_schedule(F&& f) {
  for (Size const& z : kSizes)
    for (int block_m : {16, 32})
      for (int64_t grain : {5, 16, 64})
        for (int rank = 0; rank < z.ranks; ++rank)
          for (bool gather : {true, false}) {
            Shards const shards{z.m, z.ranks, 1};
            Turns const turns = gather ? turns_of_gather(shards, z.node_ranks, grain, rank)
                                       : turns_of_sums(shards, z.node_ranks, grain, rank);
            ASSERT_LE(turns.count, Schedule::kMaxRuns);
            f(z, shards, turns, arrange(turns, gather, z.m, block_m, 3, 2), rank, gather);
          }
}

TEST(NodeSchedule, TurnsHoldEachRowOnce) {
  each_schedule([](Size const& z, Shards const&, Turns const& turns, Schedule const&, int, bool) {
    std::map<int64_t, int64_t> parts;
    for (int t = 0; t < turns.count; ++t) parts[turns.part[t].first] = turns.part[t].end();
    int64_t row = 0;
    for (auto [first, end] : parts) {
      ASSERT_EQ(first, row);
      row = end;
    }
    ASSERT_EQ(row, z.m);
  });
}

TEST(NodeSchedule, HoldsEachTileOnce) {
  each_schedule([](Size const& z, Shards const&, Turns const&, Schedule const& s, int, bool) {
    std::map<std::pair<int64_t, int>, int> seen;
    int64_t rows = 0;
    for (int64_t i = 0; i < s.size(); ++i) {
      Tile const tile = s[i];
      ASSERT_EQ(tile.row % s.block_m, 0);
      ASSERT_EQ(++seen[std::pair(tile.row, tile.n)], 1);
      if (tile.n == 0) rows += tile.rows;
    }
    ASSERT_EQ(rows, z.m);
    ASSERT_EQ(static_cast<int64_t>(seen.size()), (z.m + s.block_m - 1) / s.block_m * (z.m > 0 ? 3 : 0));
  });
}

// Own shard, own node, other nodes; of sums the other way round, own rows last.
TEST(NodeSchedule, GoesFromNearToFarOrBack) {
  each_schedule([](Size const& z, Shards const& shards, Turns const&, Schedule const& s, int rank, bool gather) {
    auto distance = [&](int owner) { return owner == rank ? 0 : owner / z.node_ranks == rank / z.node_ranks ? 1 : 2; };
    int before = gather ? 0 : 2;
    for (int64_t i = 0; i < s.size(); ++i) {
      Tile const tile = s[i];
      int due = distance(shards.owner(tile.row));
      each_band(shards, tile.range(), [&](Place band, int64_t) {
        due = std::max(due, distance(band.rank));  // the farthest comes last, or leaves first
        return true;
      });
      if (gather) {
        ASSERT_GE(due, before) << "tile " << i;
      } else {
        ASSERT_LE(due, before) << "tile " << i;
      }
      before = due;
    }
  });
}

// Two nodes of two ranks, shards of 8 rows in two parts: rank 0 sees the parts of ranks 2 and 3 in turn.
TEST(NodeSchedule, PartsOfOtherNodesTakeTurns) {
  Turns const turns = turns_of_gather({32, 4, 1}, 2, 4, 0);
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (int t = 0; t < turns.count; ++t) parts.emplace_back(turns.part[t].first, turns.part[t].count);
  using Parts = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(parts, (Parts{{0, 8}, {8, 8}, {16, 4}, {24, 4}, {20, 4}, {28, 4}}));
}

}  // namespace
}  // namespace flux::test
