#include "trace/timeline.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "error_of.h"
#include "trace/lanes.h"

namespace flux {
namespace {

Span span(int32_t rank, int32_t track, SpanKind kind, int64_t begin, int64_t end, int64_t row = -1, int64_t rows = 0) {
  Span s;
  s.rank = rank, s.track = track, s.kind = kind, s.begin_ns = begin, s.end_ns = end, s.row = row, s.rows = rows;
  return s;
}

/// Rank 0 brings rows 4 to 7 to rank 1, which waits for them after its own tile.
Timeline two_ranks() {
  Timeline t;
  t.title = "AG+GEMM";
  t.facts = {{"link", "declared, 1 GB/s"}};
  t.tracks = {{{0, 0}, "worker 0"}, {{0, 1}, "copy engine"}, {{1, 0}, "worker 0"}};
  Span copy = span(0, 1, SpanKind::kCopy, 1000, 1600, 4, 4);
  copy.peer = 1;
  t.spans = {span(1, 0, SpanKind::kMaths, 1000, 1500, 0, 4), span(1, 0, SpanKind::kWait, 1500, 1600, 4, 4),
             span(1, 0, SpanKind::kMaths, 1600, 2000, 4, 4), span(0, 0, SpanKind::kMaths, 1000, 1400, 4, 4), copy};
  return t;
}

TEST(Timeline, PassesAsBytes) {
  Timeline const t = two_ranks();
  EXPECT_EQ(timeline_from(to_bytes(t)), t);
  EXPECT_EQ(timeline_from(to_bytes({})), Timeline());
}

TEST(Timeline, WaitsBesideMathsHoldNobodyUp) {
  auto wait = [](int64_t begin, int64_t end) { return span(0, 0, SpanKind::kWait, begin, end, 8, 4); };
  std::vector<Span> const busy = {span(0, 0, SpanKind::kMaths, 100, 200), span(0, 0, SpanKind::kMaths, 200, 300),
                                  span(0, 0, SpanKind::kMaths, 400, 500)};
  auto left = [&](std::vector<Span> const& waits) { return outside(waits, busy); };
  EXPECT_EQ(left({wait(120, 180), wait(150, 300), wait(400, 500)}), std::vector<Span>());
  EXPECT_EQ(left({wait(0, 150)}), std::vector{wait(0, 100)});
  EXPECT_EQ(left({wait(250, 400)}), std::vector{wait(300, 400)});
  EXPECT_EQ(left({wait(50, 600)}), (std::vector{wait(50, 100), wait(300, 400), wait(500, 600)}));
  EXPECT_EQ(left({wait(300, 400), wait(510, 520)}), (std::vector{wait(300, 400), wait(510, 520)}));
  EXPECT_EQ(outside(std::vector{wait(1, 2)}, {}), std::vector{wait(1, 2)});
  std::vector<Span> const own = {span(0, 0, SpanKind::kMaths, 100, 200, 8, 4)};  // waits for the rest of its k
  EXPECT_EQ(outside(std::vector{wait(120, 180)}, own), std::vector{wait(120, 180)});
}

TEST(Timeline, RefusesOtherBytes) {
  std::vector<std::byte> const bytes = to_bytes(two_ranks());
  for (size_t length = 0; length < bytes.size(); ++length)
    invalid([&] { timeline_from(std::span(bytes).first(length)); });
  std::vector<std::byte> more = bytes;
  more.push_back(std::byte{0});
  invalid([&] { timeline_from(more); });
  // Whatever a byte is turned into, reading ends, in a timeline or in the error.
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::vector<std::byte> changed = bytes;
    changed[at] ^= std::byte{0xff};
    try {
      timeline_from(changed);
    } catch (Error const& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalid);
    }
  }
}

TEST(Timeline, MergesRanks) {
  Timeline all;
  all.merge(two_ranks());
  Timeline other;
  other.title = "ignored", other.facts = {{"ignored", "too"}}, other.tracks = {{{2, 0}, "worker 0"}};
  other.spans = {span(2, 0, SpanKind::kSum, 5, 6)};
  all.merge(other);
  EXPECT_EQ(all.title, "AG+GEMM");
  EXPECT_EQ(all.facts.size(), 1u);
  EXPECT_EQ(all.tracks.size(), 4u);
  EXPECT_EQ(all.spans.size(), 6u);
  EXPECT_EQ(all.spans.back(), other.spans[0]);
}

TEST(Lanes, SortAndCount) {
  Timeline t = two_ranks();
  t.spans.push_back(span(1, 7, SpanKind::kSum, 900, 950));
  Lanes const lanes = lanes_of(t);
  EXPECT_EQ(lanes.begin_ns, 900);
  EXPECT_EQ(lanes.end_ns, 2000);
  ASSERT_EQ(lanes.lanes.size(), 4u);
  EXPECT_EQ(lanes.lanes[1].name, "copy engine");
  EXPECT_EQ(lanes.lanes[2].total(SpanKind::kMaths), 900);
  EXPECT_EQ(lanes.lanes[2].total(SpanKind::kWait), 100);
  EXPECT_EQ(lanes.lanes[2].spans[1]->kind, SpanKind::kWait);
  EXPECT_EQ(lanes.lanes[3].name, "track 7");
}

TEST(Lanes, SumUpInASentence) {
  EXPECT_EQ(summary(lanes_of(two_ranks())),
            "Workers multiply 65 % of the time and wait 5 % of it; 67 % of the copying happens while the same rank "
            "multiplies.");
  EXPECT_EQ(summary(lanes_of({})), "Nothing was multiplied here.");
}

TEST(Lanes, HiddenCopyingIsCountedOnce) {
  Timeline t;  // two workers and two engines at the same time
  t.spans = {span(0, 0, SpanKind::kMaths, 0, 100), span(0, 1, SpanKind::kMaths, 50, 200),
             span(0, 2, SpanKind::kCopy, 0, 400), span(0, 3, SpanKind::kCopy, 100, 400)};
  EXPECT_EQ(summary(lanes_of(t)),
            "Workers multiply 31 % of the time and wait 0 % of it; 50 % of the copying happens while the same rank "
            "multiplies.");
}

TEST(Lanes, ACopyReleasesTheFirstTileThatReadsItsRows) {
  Timeline t = two_ranks();
  t.spans.push_back(span(1, 0, SpanKind::kMaths, 1650, 1700, 0, 4));  // other rows
  t.spans.push_back(span(0, 0, SpanKind::kMaths, 1610, 1700, 4, 4));  // another rank
  auto const found = releases(t);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].first, &t.spans[4]);
  EXPECT_EQ(found[0].second, &t.spans[2]);
}

TEST(Lanes, ACopyOfPartialsReleasesASum) {
  Timeline t = two_ranks();
  t.spans[4].feeds = SpanKind::kSum;
  EXPECT_TRUE(releases(t).empty());
  t.spans.push_back(span(1, 0, SpanKind::kSum, 2000, 2100, 0, 8));
  auto const found = releases(t);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].second, &t.spans[5]);
}

}  // namespace
}  // namespace flux
