// Shards and bands: whose rows are whose.
#include "tile/place.h"

#include <gtest/gtest.h>

#include "tile/sweep.h"

namespace flux::test {
namespace {

constexpr int64_t kBillion = 1'000'000'000;

// Seven rows over three ranks, by hand.
constexpr Shards kSeven{7, 3, 1};
static_assert(kSeven.begin(0) == 0 && kSeven.begin(1) == 2 && kSeven.begin(2) == 4 && kSeven.begin(3) == 7);
static_assert(kSeven.largest() == 3);
static_assert(kSeven.owner(1) == 0 && kSeven.owner(2) == 1 && kSeven.owner(6) == 2);
static_assert(kSeven.band({1, 4}).rank == 0 && kSeven.band({1, 4}).row == 1 && kSeven.band({1, 4}).rows == 1);
// Fewer rows than ranks: the last ranks of each group own them.
static_assert(Shards{1, 4, 1}.owner(0) == 3 && Shards{1, 4, 1}.size(0) == 0);
// 20 elements in units of 8 over two ranks: the second unit and the ragged third go to rank 1.
static_assert(Shards{20, 2, 8}.begin(1) == 8 && Shards{20, 2, 8}.size(1) == 12);
// Beyond 2^31.
static_assert(Shards{5 * kBillion, 16, 1}.begin(16) == 5 * kBillion);
static_assert(Shards{5 * kBillion, 16, 1}.owner(5 * kBillion - 1) == 15);

TEST(Shards, EveryElementHasOneOwnerAndOwnerInvertsBegin) {
  for (int64_t total : swept_rows())
    for (int ranks = 1; ranks <= kMaxRanks; ++ranks)
      for (int64_t unit : {1, 3, 8}) {
        Shards const s{total, ranks, unit};
        ASSERT_EQ(s.begin(0), 0);
        ASSERT_EQ(s.begin(ranks), total);
        int64_t most = 0;
        for (int r = 0; r < ranks; ++r) {
          ASSERT_GE(s.size(r), 0);
          ASSERT_TRUE(s.begin(r) == total || s.begin(r) % unit == 0);
          most = std::max(most, s.size(r));
          for (int64_t i = s.begin(r); i < s.begin(r + 1); ++i) ASSERT_EQ(s.owner(i), r) << total << " " << ranks;
        }
        ASSERT_LE(most, s.largest());
        ASSERT_TRUE(unit != 1 || most == s.largest());
      }
}

TEST(Shards, RowsAreDividedAsTheDesignSays) {
  for (int64_t m : swept_rows())
    for (int ranks = 1; ranks <= kMaxRanks; ++ranks)
      for (int r = 0; r <= ranks; ++r) ASSERT_EQ((Shards{m, ranks, 1}.begin(r)), r * m / ranks);
}

TEST(Shards, HoldBeyondTwoToThe31) {
  for (int64_t total : {int64_t{1} << 31, (int64_t{1} << 32) + 7, int64_t{1} << 40})
    for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
      Shards const s{total, ranks, 1};
      for (int r = 0; r < ranks; ++r) {
        ASSERT_EQ(s.owner(s.begin(r)), r);
        ASSERT_EQ(s.owner(s.begin(r + 1) - 1), r);
      }
    }
}

TEST(Bands, CoverRowsExactlyAndInOrder) {
  for (int64_t m : swept_rows())
    for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
      Shards const s{m, ranks, 1};
      for (int block : swept_blocks())
        for (int64_t first = 0; first < m; first += block) {
          Rows const rows{first, std::min<int64_t>(block, m - first)};
          int64_t next = first;
          bool const all = each_band(s, rows, [&](Place band, int64_t at) {
            EXPECT_EQ(at, next);
            EXPECT_GT(band.rows, 0);
            EXPECT_EQ(s.begin(band.rank) + band.row, at);
            EXPECT_LE(band.row + band.rows, s.size(band.rank));
            next = at + band.rows;
            return !testing::Test::HasFailure();
          });
          ASSERT_TRUE(all) << m << " rows, " << ranks << " ranks, block " << block << " from " << first;
          ASSERT_EQ(next, rows.end());
        }
    }
}

TEST(Bands, StopWhereAskedTo) {
  int seen = 0;
  EXPECT_FALSE(each_band(Shards{16, 4, 1}, {0, 16}, [&](Place, int64_t) { return ++seen < 2; }));
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace flux::test
