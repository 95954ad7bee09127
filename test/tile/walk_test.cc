// A walk visits exactly every stride-th tile of the schedule.
#include <gtest/gtest.h>

#include <random>

#include "tile/schedule.h"

namespace flux {
namespace {

TEST(Walk, IsEveryStridethTile) {
  std::mt19937 random(1);
  auto below = [&](int n) { return static_cast<int>(random() % n); };
  for (int round = 0; round < 20000; ++round) {
    Shards const shards{below(3000), 1 + below(8), 1};
    Schedule const schedule = arrange(static_cast<Order>(below(4)), static_cast<Tiling>(below(2)), shards,
                                      1 + below(300), 1 + below(40), 1 + below(9), below(shards.ranks));
    int const stride = 1 + below(140);
    int64_t at = below(stride);
    for (Walk walk(schedule, at, stride); walk; ++walk, at += stride) {
      Tile const tile = *walk, expected = schedule[at];
      ASSERT_EQ(tile.row, expected.row);
      ASSERT_EQ(tile.rows, expected.rows);
      ASSERT_EQ(tile.n, expected.n);
    }
    ASSERT_GE(at, schedule.size());
  }
}

}  // namespace
}  // namespace flux
