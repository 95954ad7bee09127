// Packets: where they lie, what is taken for whose, and which may be cleared.
#include "tile/packet.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace flux::test {
namespace {

static_assert(packets_of(0) == 0 && packets_of(12) == 1 && packets_of(16) == 2 && packets_of(24576) == 2048);
static_assert(tag_of(0, 0) != 0 && tag_of(kTaggedCalls, 0) != 0);
static_assert(tag_of(5, 7) == tag_of(5 + kTaggedCalls, 7), "so old packets are cleared");
static_assert(tag_of(5, 7) != tag_of(6, 7) && tag_of(5, 7) != tag_of(5, 9));

/// GEMM+AR in one shot and two, GEMM+RS, AG+GEMM.
enum class Pattern { kOneShot, kTwoShots, kScatter, kGather };

PacketLayout layout_of(Pattern pattern, int64_t m, int ranks) {
  PacketLayout layout{{m, pattern == Pattern::kOneShot ? 1 : ranks, 1}, ranks, 3};
  layout.partials = pattern != Pattern::kGather;
  layout.rows = pattern == Pattern::kTwoShots || pattern == Pattern::kGather;
  return layout;
}

// What every rank sends is what its peers await: each once, within the half, and nothing else.
TEST(PacketLayout, WhatIsSentIsAwaited) {
  for (Pattern pattern : {Pattern::kOneShot, Pattern::kTwoShots, Pattern::kScatter, Pattern::kGather})
    for (int64_t m : {1, 2, 3, 7, 8, 17, 64, 65})
      for (int ranks : {2, 3, 8, 16}) {
        PacketLayout const layout = layout_of(pattern, m, ranks);
        std::vector<std::set<int64_t>> sent(ranks);
        size_t count = 0, different = 0;
        auto send = [&](int to, int64_t at) {
          for (int64_t i = 0; i < layout.row_packets; ++i, ++count) sent[to].insert(at + i);
        };
        for (int from = 0; from < ranks; ++from)
          for (int to = 0; to < ranks; ++to) {
            if (to == from) continue;
            Rows const to_sum = layout.rows_of(to), own = layout.rows_of(from);
            for (int64_t local = 0; layout.partials && local < to_sum.count; ++local)
              send(to, layout.partial(from, local));
            for (int64_t row = own.first; layout.rows && row < own.end(); ++row) send(to, layout.whole(row));
            if (layout.greets()) sent[to].insert(layout.greeting(from)), ++count;
          }
        // Whoever has all packets of a call has heard, directly or through an owner, from all.
        for (int to = 0; to < ranks && !(layout.partials && layout.rows); ++to) {
          std::set<int> heard{to};
          for (int from = 0; from < ranks; ++from) {
            bool const partial = layout.partials && layout.rows_of(to).count > 0;
            bool const row = layout.rows && layout.rows_of(from).count > 0;
            if (partial || row || layout.greets()) heard.insert(from);
          }
          ASSERT_EQ(heard.size(), static_cast<size_t>(ranks)) << m << " rows, rank " << to;
        }
        for (int r = 0; r < ranks; ++r) {
          different += sent[r].size();
          for (int64_t at = 0; at < layout.size() + 100; ++at)
            ASSERT_EQ(layout.awaited(r, at), sent[r].contains(at))
                << m << " rows, " << ranks << " ranks, pattern " << static_cast<int>(pattern) << ", rank " << r
                << ", at " << at;
        }
        EXPECT_EQ(different, count) << "two packets in one place";
      }
}

class Arriving : public testing::Test {
 protected:
  Arriving() { watch_.abort.base[0] = &abort_, watch_.record = &record_, watch_.limit_ns = 2'000'000; }
  bool await(Word tag) {
    packet_ = load_packet(&place_);
    return await_packet(&place_, packet_, tag, watch_, Awaited::kPartial, 3, 5);
  }
  alignas(16) Packet place_{};
  Packet packet_{};
  Word abort_ = 0;
  Record record_{};
  Watch watch_;
};

TEST_F(Arriving, BringsAllBits) {
  for (Word bits : {0u, 0xffffffffu, 0x7fc07fc0u, 0xff807f80u}) {  // zeros, NaN, infinities
    store_packet(&place_, {{bits, ~bits, bits}, tag_of(9, 4)});
    EXPECT_TRUE(await(tag_of(9, 4)));
    EXPECT_EQ(packet_.data[0], bits);
    EXPECT_EQ(packet_.data[1], ~bits);
    EXPECT_EQ(packet_.data[2], bits);
  }
  EXPECT_EQ(abort_, 0u);
}

TEST_F(Arriving, IsNotWhatAnEarlierCallLeft) {
  store_packet(&place_, {{}, tag_of(7, 4)});
  EXPECT_FALSE(await(tag_of(9, 4)));
  EXPECT_EQ(static_cast<Reason>(abort_ >> 8), Reason::kTimeout);
  EXPECT_EQ(record_.peer, 3u);
  EXPECT_EQ(record_.row, 5u);
}

TEST_F(Arriving, OfAnotherCallEndsTheWorldAtOnce) {
  store_packet(&place_, {{}, tag_of(9, 6)});
  watch_.limit_ns = 60'000'000'000;
  EXPECT_FALSE(await(tag_of(9, 4)));
  EXPECT_EQ(static_cast<Reason>(abort_ >> 8), Reason::kOtherCall);
}

}  // namespace
}  // namespace flux::test
