// The index arithmetic of gates and routes: a word for each thing that is awaited, inside the array, never shared.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tile/gate.h"
#include "tile/route.h"
#include "tile/sweep.h"

namespace flux::test {
namespace {

static_assert(ArrivalWords{{64, 4, 1}, {32, 2, 8}, 8}.size() == 4 * 2 * 2);
static_assert(ArrivalWords{{64, 4, 1}, {32, 2, 8}, 8}.index(3, 1, 1) == 15);
// Shard 1 of 7 rows over 2 ranks begins inside the tile row 2..3: its first band is one row high.
static_assert(BandWords{{7, 2, 1}, 2, Tiling::kAcross}.offset(1) == 1);
static_assert(BandWords{{7, 2, 1}, 2, Tiling::kAcross}.count(1) == 3);
static_assert(BandWords{{7, 2, 1}, 2, Tiling::kAcross}.place(1, 0).rows == 1);
static_assert(BandWords{{7, 2, 1}, 2, Tiling::kWithin}.count(1) == 2);

TEST(ArrivalWords, AreInRangeAndUnique) {
  for (int64_t m : swept_rows())
    for (int ranks = 1; ranks <= kMaxRanks; ++ranks)
      for (int64_t comm_rows : {1, 2, 7, 64, 1000})
        for (int slices : {1, 3}) {
          ArrivalWords const words{{m, ranks, 1}, {40, slices, 8}, comm_rows};
          std::set<int64_t> used;
          int64_t count = 0;
          for (int source = 0; source < ranks; ++source)
            for (int64_t tile = 0; tile * comm_rows < words.shards.size(source); ++tile)
              for (int s = 0; s < slices; ++s, ++count) {
                int64_t const i = words.index(source, tile, s);
                ASSERT_TRUE(i >= 0 && i < words.size()) << m << " " << ranks << " " << comm_rows;
                used.insert(i);
              }
          ASSERT_EQ(static_cast<int64_t>(used.size()), count) << m << " " << ranks << " " << comm_rows;
        }
}

// Raises every word that the tile's rows need and no other: the gate lets the tile through. Any one of them missing:
// it does not.
TEST(Arrival, WaitsForExactlyTheWordsOfItsRows) {
  constexpr Word kGoal = 7;
  Word abort = 0;
  Record record{};
  for (int64_t m : {1, 13, 61, 97})
    for (int ranks : {2, 3, 8})
      for (int64_t comm_rows : {1, 5, 64})
        for (int block : {4, 16, 37})
          for (int64_t first = 0; first < m; first += block) {
            Arrival gate;
            gate.rank = 1, gate.layout = {{m, ranks, 1}, {16, 1, 8}, comm_rows}, gate.goal = kGoal;
            gate.watch.abort.base[0] = &abort, gate.watch.record = &record, gate.watch.limit_ns = -1;
            std::vector<Word> words(gate.layout.size());
            gate.words = words.data();
            Rows const rows{first, std::min<int64_t>(block, m - first)};
            std::set<int64_t> needed;
            for (int64_t row = rows.first; row < rows.end(); ++row) {
              int const source = gate.layout.shards.owner(row);
              if (source == gate.rank) continue;
              needed.insert(gate.layout.index(source, (row - gate.layout.shards.begin(source)) / comm_rows, 0));
            }
            for (int64_t i : needed) words[i] = kGoal;
            abort = 0;
            ASSERT_TRUE(gate.wait(rows, 0));
            for (int64_t i : needed) {
              words[i] = 0, abort = 0;
              ASSERT_FALSE(gate.wait(rows, 0));
              words[i] = kGoal;
            }
          }
}

TEST(BandWords, AreInRangeAndUniqueAndTheirPlacesCoverEachShard) {
  for (int64_t m : swept_rows())
    for (int ranks = 1; ranks <= kMaxRanks; ++ranks)
      for (int block : swept_blocks())
        for (Tiling tiling : {Tiling::kAcross, Tiling::kWithin})
          for (int tall : {1, 2, 7}) {
            BandWords const words{{m, ranks, 1}, block, tiling, tall};
            for (int owner = 0; owner < ranks; ++owner) {
              int64_t next = 0;
              int tile_rows = 0;
              ASSERT_LE(words.count(owner), words.most());
              for (int b = 0; b < words.count(owner); ++b) {
                Place const place = words.place(owner, b);
                ASSERT_TRUE(place.rank == owner && place.row == next && place.rows > 0 && place.rows <= tall * block)
                    << m << " " << ranks << " " << block << " " << owner << " " << b << " " << tall;
                ASSERT_EQ(words.index(place), b);
                int64_t const i = words.index(owner, b);
                ASSERT_TRUE(i >= 0 && i < words.size() && i / words.most() == owner);
                next += place.rows, tile_rows += words.tile_rows(owner, b);
              }
              ASSERT_EQ(next, words.shards.size(owner)) << m << " " << ranks << " " << block << " " << owner;
              ASSERT_EQ(tile_rows, words.tile_rows(owner));
            }
          }
}

// What the tiles of a schedule announce is what owners wait for: of each band as many tile rows as are counted.
TEST(BandWords, AreTheBandsOfTheTiles) {
  for (int64_t m : swept_rows())
    for (int ranks : {1, 2, 3, 5, 8, 16})
      for (int block : {1, 3, 16, 64, 256})
        for (Tiling tiling : {Tiling::kAcross, Tiling::kWithin})
          for (int tall : {1, 3}) {
            BandWords const words{{m, ranks, 1}, block, tiling, tall};
            Schedule const schedule = arrange(Order::kRotated, tiling, words.shards, block, 1, 4, 0);
            std::map<int64_t, int> announced;
            for (int64_t i = 0; i < schedule.size(); ++i)
              each_band(words.shards, schedule[i].range(), [&](Place band, int64_t) {
                int const b = words.index(band);
                Place const place = words.place(band.rank, b);
                EXPECT_TRUE(place.row <= band.row && place.row + place.rows >= band.row + band.rows)
                    << m << " " << ranks << " " << block;
                ++announced[words.index(band.rank, b)];
                return true;
              });
            size_t expected = 0;
            for (int owner = 0; owner < ranks; ++owner) {
              expected += words.count(owner);
              for (int b = 0; b < words.count(owner); ++b)
                ASSERT_EQ(announced[words.index(owner, b)], words.tile_rows(owner, b))
                    << m << " " << ranks << " " << block << " " << tall;
            }
            ASSERT_EQ(announced.size(), expected);
          }
}

// Memory is sized for the most rows; every smaller call must fit.
TEST(Words, OfAnySmallerCallFit) {
  for (int64_t max_m : swept_rows())
    for (int64_t m = 0; m <= max_m; m += 1 + max_m / 23)
      for (int ranks : {1, 2, 3, 8, 16})
        for (int block : {1, 3, 64, 256})
          for (int tall : {1, 2}) {
            BandWords const most{{max_m, ranks, 1}, block}, now{{m, ranks, 1}, block, Tiling::kAcross, tall};
            ASSERT_LE(now.size(), most.size());
          }
}

TEST(BandWords, HoldBeyondTwoToThe31) {
  BandWords const words{{(int64_t{1} << 33) + 3, 5, 1}, 128, Tiling::kAcross};
  for (int owner = 0; owner < 5; ++owner) {
    int const last = words.count(owner) - 1;
    Place const place = words.place(owner, last);
    EXPECT_EQ(place.row + place.rows, words.shards.size(owner));
    EXPECT_EQ(words.index(place), last);
    EXPECT_LT(words.index(owner, last), words.size());
  }
}

TEST(Announcer, TellsOnceWhenTheLastTileIsStored) {
  Word counts[4] = {}, words[4] = {};
  Announcer out;
  out.bands = {{8, 2, 1}, 4, Tiling::kAcross}, out.tiles_n = 3, out.counts = counts, out.goal = 9;
  out.words.base[0] = words;
  Place const band{0, 0, 4};
  for (int call = 0; call < 2; ++call) {
    EXPECT_FALSE(out.last(band));
    EXPECT_FALSE(out.last(band));
    EXPECT_TRUE(out.last(band));  // and the count is ready for the next call
  }
  out.tell(0, 0, band);
  EXPECT_EQ(words[0], 9u);
}

TEST(Announcer, OfABandOfSeveralTileRowsTellsBehindAllOfThem) {
  Word counts[4] = {};
  Announcer out;
  out.bands = {{10, 2, 1}, 2, Tiling::kAcross, 2};  // rank 1 owns rows 5 to 9: tile rows 2 and 3, then 4
  out.tiles_n = 3, out.counts = counts;
  for (int call = 0; call < 2; ++call) {
    for (int tile = 0; tile < 3; ++tile) EXPECT_FALSE(out.last({1, 0, 1}));
    for (int tile = 0; tile < 3; ++tile) EXPECT_EQ(out.last({1, 1, 2}), tile == 2);
    for (int tile = 0; tile < 3; ++tile) EXPECT_EQ(out.last({1, 3, 2}), tile == 2);
  }
}

}  // namespace
}  // namespace flux::test
