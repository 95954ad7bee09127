// Schedules: every tile once, in an order that hides communication.
#include "tile/schedule.h"

#include <gtest/gtest.h>

#include "tile/sweep.h"

namespace flux::test {
namespace {

constexpr Order kOrders[] = {Order::kNaive, Order::kArrival, Order::kRotated, Order::kRelay};
constexpr Tiling kTilings[] = {Tiling::kAcross, Tiling::kWithin};

// Arrangement is a constant expression: eight rows over two ranks in tiles of two, rank 1 begins with its own.
constexpr Schedule kArrival = arrange(Order::kArrival, Tiling::kAcross, {8, 2, 1}, 2, 3, 1, 1);
static_assert(kArrival.size() == 12 && kArrival.runs == 2);
static_assert(kArrival[0].row == 4 && kArrival[6].row == 0 && kArrival[11].row == 2 && kArrival[11].n == 2);
constexpr Schedule kRotated = arrange(Order::kRotated, Tiling::kAcross, {8, 2, 1}, 2, 3, 1, 1);
static_assert(kRotated[0].row == 0 && kRotated[11].row == 6);
static_assert(arrange(Order::kArrival, Tiling::kAcross, {0, 4, 1}, 2, 3, 1, 1).size() == 0);
static_assert(arrange(Order::kArrival, Tiling::kAcross, {8, 4, 1}, 2, 0, 1, 1).size() == 0);

// When a tile is due: the latest (AG) or earliest (RS) of its owners' turns.
int due(Order order, Shards const& shards, Tile tile, int rank) {
  int value = -1;
  each_band(shards, tile.range(), [&](Place band, int64_t) {
    int const turn = position(order, band.rank, rank, shards.ranks);
    if (value < 0 || (order == Order::kArrival ? turn > value : turn < value)) value = turn;
    return true;
  });
  return value;
}

struct Case {
  Order order;
  Tiling tiling;
  Shards shards;
  int block_m, tiles_n, band, rank, together = 0;
};

std::ostream& operator<<(std::ostream& out, Case const& c) {
  return out << "order " << int(c.order) << " tiling " << int(c.tiling) << " m=" << c.shards.total
             << " ranks=" << c.shards.ranks << " block=" << c.block_m << " tiles_n=" << c.tiles_n << " band=" << c.band
             << " rank=" << c.rank << " together=" << c.together;
}

void check(Case const& c) {
  Schedule const s = arrange(c.order, c.tiling, c.shards, c.block_m, c.tiles_n, c.band, c.rank, c.together);
  ASSERT_LE(s.runs, Schedule::kMaxRuns) << c;
  std::vector<uint8_t> seen(c.shards.total * c.tiles_n);
  int hint = 0, previous = 0;
  for (int64_t i = 0; i < s.size(); ++i) {
    Tile const t = s.at(i, hint);
    ASSERT_TRUE(t.n >= 0 && t.n < c.tiles_n && t.rows > 0 && t.rows <= c.block_m) << c;
    ASSERT_TRUE(t.row >= 0 && t.row + t.rows <= c.shards.total) << c;
    int64_t const within = t.row - c.shards.begin(c.shards.owner(t.row));
    ASSERT_EQ((c.tiling == Tiling::kWithin ? within : t.row) % c.block_m, 0) << c;
    ASSERT_TRUE(c.tiling == Tiling::kAcross || c.shards.owner(t.row) == c.shards.owner(t.row + t.rows - 1)) << c;
    for (int64_t row = t.row; row < t.row + t.rows; ++row) {
      uint8_t& visits = seen[row * c.tiles_n + t.n];
      ASSERT_EQ(visits++, 0) << c << ": row " << row << " of column block " << t.n << " comes twice";
    }
    int turn = due(c.order, c.shards, t, c.rank);
    if (c.together > 0) turn = turn == c.shards.ranks - 1;  // the others' in any order, the own last
    ASSERT_GE(turn, previous) << c << ": tile " << i << " comes late";
    previous = turn;
  }
  for (uint8_t visits : seen) ASSERT_EQ(visits, 1) << c;
}

TEST(Schedule, VisitsEveryElementOnceAndInTurn) {
  for (int64_t m : swept_rows())
    for (int ranks : {1, 2, 3, 4, 5, 7, 8, 11, 16})
      for (int block : swept_blocks())
        for (Tiling tiling : kTilings)
          for (Order order : kOrders)
            for (int rank = 0; rank<ranks; rank += ranks> 4 ? 3 : 1)
              for (auto [tiles_n, band] : {std::pair{1, 1}, {3, 4}}) {
                check({order, tiling, {m, ranks, 1}, block, tiles_n, band, rank});
                if (testing::Test::HasFatalFailure()) return;
              }
}

TEST(Schedule, VisitsEveryElementOnceWhateverTheBand) {
  for (int band : {-1, 0, 1, 2, 3, 7, 64, 100000})
    for (int tiles_n : {1, 2, 5, 33})
      for (Order order : kOrders) {
        check({order, Tiling::kAcross, {211, 4, 1}, 8, tiles_n, band, 2});
        if (testing::Test::HasFatalFailure()) return;
      }
}

// Seven shards of two tile rows, rank 2's own last: four tile rows at a time, but no run goes round the end.
constexpr Schedule kTogether = arrange(Order::kRotated, Tiling::kAcross, {28, 7, 1}, 2, 3, 8, 2, 4);
static_assert(kTogether.runs == 4 && kTogether.size() == 42);
static_assert(kTogether.run[0].row == 12 && kTogether.run[1].row == 20 && kTogether.run[2].row == 0 &&
              kTogether.run[3].row == 8);
static_assert(kTogether.run[1].start == 12 && kTogether.run[2].start == 24 && kTogether.run[3].start == 36);

TEST(Schedule, LowShardsMayBeVisitedTogether) {
  for (int64_t m : swept_rows())
    for (int ranks : {1, 2, 3, 8, 16})
      for (int block : swept_blocks())
        for (int together : {1, 2, 5, 100}) {
          check({Order::kRotated, Tiling::kAcross, {m, ranks, 1}, block, 3, 4, ranks / 2, together});
          if (testing::Test::HasFatalFailure()) return;
        }
}

// The first tile of AG holds own rows alone where any tile does; the last of RS ends with own rows.
TEST(Schedule, OwnShardIsFirstInAgAndLastInRs) {
  for (int64_t m : swept_rows())
    for (int ranks = 2; ranks <= kMaxRanks; ++ranks)
      for (int rank = 0; rank < ranks; ++rank) {
        Shards const shards{m, ranks, 1};
        if (shards.size(rank) == 0) continue;
        auto only_own = [&](Tile t) { return shards.owner(t.row) == rank && shards.owner(t.row + t.rows - 1) == rank; };
        Schedule const ag = arrange(Order::kArrival, Tiling::kAcross, shards, 2, 1, 4, rank);
        Schedule const rs = arrange(Order::kRotated, Tiling::kAcross, shards, 2, 1, 4, rank);
        int64_t own = 0;
        for (int64_t i = 0; i < ag.size(); ++i) own += only_own(ag[i]);
        for (int64_t i = 0; i < own; ++i) {
          ASSERT_TRUE(only_own(ag[i])) << m << " " << ranks << " " << rank;
          ASSERT_TRUE(only_own(rs[rs.size() - 1 - i])) << m << " " << ranks << " " << rank;
        }
      }
}

// At any moment no two ranks write to one owner: the i-th shard in line differs from rank to rank.
TEST(Schedule, RanksTakeTurnsAtEveryOwner) {
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks)
    for (Order order : {Order::kArrival, Order::kRotated, Order::kRelay})
      for (int shard = 0; shard < ranks; ++shard) {
        uint32_t turns = 0;
        for (int rank = 0; rank < ranks; ++rank) turns |= 1u << position(order, shard, rank, ranks);
        EXPECT_EQ(turns, (1u << ranks) - 1);
      }
}

// The relay meets what the left neighbour sent: rank r takes up a shard one turn after rank r-1 did.
TEST(Schedule, TheRelayFollowsItsLeftNeighbour) {
  for (int ranks = 2; ranks <= kMaxRanks; ++ranks)
    for (int rank = 0; rank < ranks; ++rank)
      for (int shard = 0; shard < ranks; ++shard) {
        int const left = position(Order::kRelay, shard, (rank + ranks - 1) % ranks, ranks);
        int const here = position(Order::kRelay, shard, rank, ranks);
        EXPECT_EQ(here, (left + 1) % ranks);
      }
}

TEST(Schedule, HoldsBeyondTwoToThe31) {
  Shards const shards{(int64_t{1} << 33) + 5, 7, 1};
  for (Order order : kOrders) {
    Schedule const s = arrange(order, Tiling::kAcross, shards, 128, 9, 4, 3);
    EXPECT_EQ(s.size(), (shards.total + 127) / 128 * 9);
    int hint = 0;
    int64_t rows = 0;
    for (int r = 0; r < s.runs; ++r) {  // the corners of each run
      Tile const first = s[s.run[r].start], last = s.at(s.run[r + 1].start - 1, hint);
      EXPECT_EQ(first.row, s.run[r].row);
      EXPECT_EQ(last.row + last.rows, s.run[r].row + s.run[r].rows);
      EXPECT_EQ(last.n, 8);
      rows += s.run[r].rows;
    }
    EXPECT_EQ(rows, shards.total);
  }
}

// A band as high as the whole output and many columns: the tiles of a band outnumber 32 bits unless they are bounded by
// what is there.
TEST(Schedule, ABandIsNoHigherThanItsRun) {
  Schedule const s = arrange(Order::kNaive, Tiling::kAcross, {64, 1, 1}, 64, 1 << 22, 1024, 0);
  EXPECT_EQ(s.size(), 1 << 22);
  EXPECT_EQ(s[s.size() - 1].n, (1 << 22) - 1);
}

}  // namespace
}  // namespace flux::test
