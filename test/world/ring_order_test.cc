// Which rank takes which GPU of a machine with several NUMA nodes.
#include "world/ring_order.h"

#include <gtest/gtest.h>

namespace flux::test {
namespace {

using Numbers = std::vector<int>;

TEST(RingOrder, PutsGpusOfANodeNextToEachOther) {
  Numbers const nodes = {0, 1, 0, 1, 0, 1, 0, 1};
  EXPECT_EQ(ring_order(nodes), (Numbers{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(crossings(ring_order(nodes), nodes), 2);
  EXPECT_EQ(crossings({0, 1, 2, 3, 4, 5, 6, 7}, nodes), 8);
}

// GPU 0 stays rank 0's, whatever its node is called.
TEST(RingOrder, NodesComeInTheOrderOfTheirFirstGpu) {
  EXPECT_EQ(ring_order({3, 3, 0, 3, 0}), (Numbers{0, 1, 3, 2, 4}));
  EXPECT_EQ(ring_order({2, 0, 1, 2}), (Numbers{0, 3, 1, 2}));
  EXPECT_EQ(crossings(ring_order({2, 0, 1, 2}), {2, 0, 1, 2}), 3);
}

TEST(RingOrder, ChangesNothingWhereThereIsNothingToGain) {
  for (Numbers const& nodes : {Numbers{}, {0}, {0, 0, 0, 0}, {0, 0, 1, 1}, {0, 1}, {-1, -1, -1}}) {
    Numbers same(nodes.size());
    std::iota(same.begin(), same.end(), 0);
    EXPECT_EQ(ring_order(nodes), same);
  }
  EXPECT_EQ(ring_order({0, 1, -1, 1}), (Numbers{0, 1, 2, 3}));  // one is not known
}

}  // namespace
}  // namespace flux::test
