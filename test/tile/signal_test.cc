// Bounded waits: how they end, and what they leave written.
#include "tile/signal.h"

#include <gtest/gtest.h>

#include <thread>

namespace flux::test {
namespace {

struct Ranks {
  Word abort[3] = {};
  Record record{};
  Watch watch;
  explicit Ranks(int64_t limit_ns) {
    for (int r = 0; r < 3; ++r) watch.abort.base[r] = &abort[r];
    watch.record = &record, watch.limit_ns = limit_ns, watch.rank = 1, watch.ranks = 3, watch.call = 5;
  }
  bool wait(Word const& word) { return await(&word, 9, watch, Awaited::kRows, 2, 77); }
};

TEST(Await, ReturnsOnceTheWordStands) {
  Ranks ranks(60'000'000'000);
  Word word = 0;
  int data = 0;
  std::thread setter([&] {
    data = 3;
    store_release(&word, 9);
  });
  EXPECT_TRUE(ranks.wait(word));
  EXPECT_EQ(data, 3);
  setter.join();
  EXPECT_EQ(ranks.abort[0] | ranks.abort[1] | ranks.abort[2], 0u);
}

TEST(Await, GivesUpAtItsLimitAndTellsEverybody) {
  Ranks ranks(20'000'000);
  Word const word = 0;
  EXPECT_FALSE(ranks.wait(word));
  for (Word a : ranks.abort) EXPECT_EQ(a, static_cast<Word>(Reason::kTimeout) << 8 | 2u);
  EXPECT_EQ(static_cast<Awaited>(ranks.record.what), Awaited::kRows);
  EXPECT_EQ(ranks.record.call, 5u);
  EXPECT_EQ(ranks.record.peer, 2u);
  EXPECT_EQ(ranks.record.row, 77u);
  EXPECT_EQ(ranks.record.seen, 0u);
  EXPECT_EQ(ranks.record.goal, 9u);
}

TEST(Await, GivesUpAtOnceWhereAnotherCallsWordStands) {
  Ranks ranks(60'000'000'000);
  Word const word = 8;
  EXPECT_FALSE(ranks.wait(word));
  for (Word a : ranks.abort) EXPECT_EQ(a, static_cast<Word>(Reason::kOtherCall) << 8 | 2u);
  EXPECT_EQ(ranks.record.seen, 8u);
}

TEST(Await, EndsWhenAnotherRankGaveUpAndKeepsTheFirstCause) {
  Ranks ranks(60'000'000'000);
  Word const word = 0, cause = static_cast<Word>(Reason::kFailed) << 8 | 1u;
  std::thread other([&] { store_release(&ranks.abort[1], cause); });
  EXPECT_FALSE(ranks.wait(word));
  other.join();
  raise_abort(ranks.watch, Reason::kTimeout);
  EXPECT_EQ(ranks.abort[1], cause);
}

TEST(Await, PrefersAWordThatStandsToAnAbort) {
  Ranks ranks(60'000'000'000);
  ranks.abort[1] = 1;
  Word const word = 9;
  EXPECT_TRUE(ranks.wait(word));
}

TEST(Await, ErasesItsNoteWhenTheWordCame) {
  Ranks ranks(60'000'000'000);
  Word word = 0;
  std::thread setter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(120));  // longer than a wait that is noted
    store_release(&word, 9);
  });
  EXPECT_TRUE(ranks.wait(word));
  setter.join();
  EXPECT_EQ(static_cast<Awaited>(ranks.record.what), Awaited::kNothing);
}

}  // namespace
}  // namespace flux::test
