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

struct Calls {
  int64_t m;
  int ranks;
  bool two_shots;
  PacketLayout layout() const { return {{m, two_shots ? ranks : 1, 1}, ranks, 3}; }
};
std::vector<Calls> all_calls() {
  std::vector<Calls> list;
  for (int64_t m : {1, 2, 3, 7, 8, 17, 64, 65})
    for (int ranks : {1, 2, 3, 8, 16})
      for (bool two_shots : {false, true}) list.push_back({m, ranks, two_shots && ranks > 1});
  return list;
}

// What every rank sends is what its peers await: each once, within the half, and nothing else.
TEST(PacketLayout, WhatIsSentIsAwaited) {
  for (Calls const& c : all_calls()) {
    PacketLayout const layout = c.layout();
    std::vector<std::set<int64_t>> sent(c.ranks);
    size_t count = 0;
    auto send = [&](int to, int64_t at) {
      for (int64_t i = 0; i < layout.row_packets; ++i, ++count) sent[to].insert(at + i);
    };
    for (int from = 0; from < c.ranks; ++from)
      for (int to = 0; to < c.ranks; ++to) {
        if (to == from) continue;
        Rows const rows = layout.rows_of(to);
        for (int64_t local = 0; local < rows.count; ++local) send(to, layout.partial(from, local));
        Rows const sums = layout.rows_of(from);
        for (int64_t row = sums.first; c.two_shots && row < sums.end(); ++row) send(to, layout.result(row));
      }
    size_t different = 0;
    for (int r = 0; r < c.ranks; ++r) {
      different += sent[r].size();
      for (int64_t at = 0; at < layout.size() + 100; ++at)
        ASSERT_EQ(layout.awaited(r, at), sent[r].contains(at))
            << c.m << " rows, " << c.ranks << " ranks, two shots " << c.two_shots << ", rank " << r << ", at " << at;
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
