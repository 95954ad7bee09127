// Which calls go by packets: as many rows as pay, and never so many packets that tags come again before all are
// cleared.
#include "plan/pieces.h"

#include <gtest/gtest.h>

#include "tile/packet.h"

namespace flux::test {
namespace {

constexpr int64_t kRow = 24576;  // bytes: 12288 columns

PacketShots shots(std::string_view plan, Op op, int64_t m, int ranks, Reach reach) {
  return packet_shots(parse_plan(plan), op, m, kRow, ranks, reach);
}

TEST(PacketShots, FollowTheNumberOfRowsAndTheLink) {
  using enum PacketShots;
  for (Op op : {Op::kAllGatherGemm, Op::kGemmReduceScatter}) {
    EXPECT_EQ(shots("", op, 1, 8, Reach::kPcie), kOne);
    EXPECT_EQ(shots("", op, 64, 8, Reach::kPcie), kNone);
    EXPECT_EQ(shots("", op, 64, 8, Reach::kNvlink), kOne);
    EXPECT_EQ(shots("", op, 512, 8, Reach::kNvlink), kNone);
  }
  EXPECT_EQ(shots("", Op::kGemmAllReduce, 4, 8, Reach::kNvlink), kOne);
  EXPECT_EQ(shots("", Op::kGemmAllReduce, 64, 8, Reach::kNvlink), kTwo);
  EXPECT_EQ(shots("", Op::kGemmAllReduce, 64, 2, Reach::kNvlink), kOne) << "two ranks: the second shot saves nothing";
}

TEST(PacketShots, AnyKnobOfCopiesOrRoutesGoesWithoutThem) {
  for (auto plan :
       {"fused=no", "comm_rows=shard", "copies=engine", "copies=4", "k_slices=2", "transport=pull", "path=ring"})
    EXPECT_EQ(shots(plan, Op::kAllGatherGemm, 1, 8, Reach::kNvlink), PacketShots::kNone) << plan;
  for (auto plan : {"fused=no", "route=push", "route=stage", "route=sum", "route=ring"})
    EXPECT_EQ(shots(plan, Op::kGemmAllReduce, 1, 8, Reach::kNvlink), PacketShots::kNone) << plan;
  EXPECT_EQ(shots("route=packets shots=two", Op::kGemmAllReduce, 1, 8, Reach::kNvlink), PacketShots::kTwo);
}

TEST(PacketShots, HalvesAreClearedBeforeTagsComeAgain) {
  for (auto plan : {"", "shots=one", "shots=two"})
    for (Op op : {Op::kAllGatherGemm, Op::kGemmReduceScatter, Op::kGemmAllReduce})
      for (int ranks : {2, 3, 8, kMaxRanks})
        for (Reach reach : {Reach::kPcie, Reach::kNvlink, Reach::kMemory})
          for (int64_t m = 1; m < 1000; m += 3) {
            PacketShots const found = shots(plan, op, m, ranks, reach);
            if (found == PacketShots::kNone) continue;
            PacketLayout const layout = packet_layout(op, m, kRow, ranks, found);
            EXPECT_LE(layout.size(), kTaggedCalls / 2) << plan << " " << name(op) << " " << ranks << " ranks, m " << m;
          }
}

}  // namespace
}  // namespace flux::test
