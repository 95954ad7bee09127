// Words are sized for the largest call and used by every smaller one: no call may index beyond them.
#include <gtest/gtest.h>

#include "op/gather.h"
#include "op/partial_sums.h"

namespace flux::test {
namespace {

using Way = PartialSums::Way;

// The last word that a call of m rows uses, plus one: of tiles of this height, or of whole shards.
int64_t used(int64_t m, int ranks, int block_m, Way way, Plan const& plan) {
  BandWords const bands = PartialSums::bands(m, ranks, block_m, way, plan);
  int64_t most = 0;
  for (int source = 0; source < ranks; ++source)
    for (int owner = 0; owner < bands.shards.ranks; ++owner)
      if (bands.count(owner) > 0) most = std::max(most, bands.index(source, bands.count(owner) - 1) + 1);
  return most;
}

TEST(Words, OfPartialSumsHoldEveryCallUpToTheLargest) {
  for (int ranks : {1, 2, 3, 6, 8, 16})
    for (int64_t max_m : {int64_t{1}, int64_t{7}, int64_t{64}, int64_t{500}, int64_t{1030}})
      for (auto line : {"tile=auto", "fused=no", "tile=16x24", "fused=no tile=16x24", "fused=no tile=256x512",
                        "comm_rows=100", "comm_rows=1 tile=16x24"}) {
        Plan const plan = parse_plan(line);
        for (Way way : {Way::kPush, Way::kStage, Way::kSum, Way::kRing, Way::kBroadcast}) {
          int64_t const words = PartialSums::words(max_m, ranks, plan, way);
          for (int64_t m = 1; m <= max_m; m += m < 40 ? 1 : 37) {
            std::vector<int> heights = {plan.block_m};
            if (plan.block_m == 0) heights = {64, 128, 256};          // what engines choose
            if (!plan.fused) heights.push_back(static_cast<int>(m));  // an owner's rows in one piece
            for (int height : heights)
              ASSERT_LE(used(m, ranks, height, way, plan), words)
                  << line << ", " << ranks << " ranks, " << m << " of " << max_m << " rows, tiles of " << height;
          }
        }
      }
}

TEST(Words, OfArrivalsHoldEveryCallUpToTheLargest) {
  for (int ranks : {1, 2, 3, 8, 16})
    for (int64_t max_m : {int64_t{1}, int64_t{9}, int64_t{130}, int64_t{1030}})
      for (auto line : {"", "comm_rows=1", "comm_rows=7 k_slices=3", "comm_rows=4096", "transport=remote k_slices=4"}) {
        Plan const plan = parse_plan(line);
        int64_t const words = most_arrival_words(max_m, 512, ranks, 64, plan);
        for (int64_t m = 0; m <= max_m; ++m)
          ASSERT_LE(arrival_words(m, 512, ranks, 64, plan).size(), words) << line << ", " << ranks << " ranks, m=" << m;
      }
}

}  // namespace
}  // namespace flux::test
