// Ranks that do not do the same: found at once, on threads and on processes, not by a time-out.
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "world/bootstrap.h"
#include "world/program.h"

namespace flux::test {
namespace {

constexpr double kAtOnce = 3.0;  // seconds; the limit of a wait is 10 s in these programs

struct Mishap {
  char const* program;
  ErrorKind kind;
  char const* says;
};
std::ostream& operator<<(std::ostream& out, Mishap const& m) { return out << m.program; }

class Mishaps : public testing::TestWithParam<Mishap> {
 protected:
  void check(std::vector<Ending> const& endings) {
    for (Ending const& e : endings) {
      EXPECT_EQ(e.code, kRaised) << e.said;
      EXPECT_EQ(e.kind, GetParam().kind) << e.said;
      EXPECT_NE(e.said.find(GetParam().says), std::string::npos) << e.said;
      EXPECT_LT(e.seconds, kAtOnce) << e.said;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(World, Mishaps,
                         testing::Values(Mishap{"other_order", ErrorKind::kTimeout, "different calls"},
                                         Mishap{"other_m", ErrorKind::kTimeout, "different calls"},
                                         Mishap{"other_m_far_ahead", ErrorKind::kTimeout, "different calls"},
                                         Mishap{"nodes_other_m", ErrorKind::kTimeout, "different calls"},
                                         Mishap{"other_plan", ErrorKind::kInvalid, "different operators"},
                                         Mishap{"other_operator", ErrorKind::kInvalid, "different operators"}),
                         [](auto const& info) { return std::string(info.param.program); });

TEST_P(Mishaps, AreFoundAtOnceOnThreads) { check(run_as_threads(GetParam().program)); }
TEST_P(Mishaps, AreFoundAtOnceOnProcesses) { check(run_as_processes(GetParam().program)); }

class Works : public testing::TestWithParam<char const*> {};
INSTANTIATE_TEST_SUITE_P(World, Works,
                         testing::Values("too_much_memory", "two_lanes", "nodes_two_lanes", "second_world",
                                         "no_such_gpu"),
                         [](auto const& info) { return std::string(info.param); });

TEST_P(Works, OnThreads) {
  for (Ending const& e : run_as_threads(GetParam())) EXPECT_EQ(e.code, kFine) << e.said;
}
TEST_P(Works, OnProcesses) {
  for (Ending const& e : run_as_processes(GetParam())) EXPECT_EQ(e.code, kFine) << e.said;
}

TEST(Threads, ThatThrowEndTheOthersAtOnce) {
  auto const endings = run_as_threads("throws");
  EXPECT_EQ(endings[1].said, "rank 1 has had enough");
  for (int r : {0, 2}) {
    EXPECT_EQ(endings[r].kind, ErrorKind::kTimeout);
    EXPECT_NE(endings[r].said.find("rank 1 failed"), std::string::npos) << endings[r].said;
    EXPECT_LT(endings[r].seconds, kAtOnce);
  }
}

TEST(Threads, TheErrorOfTheFirstRankToFailIsTheOneThrown) {
  try {
    run_threads(3, {}, [](World& world) {
      if (world.rank() == 2) throw std::runtime_error("the cause");
      world.barrier();
    });
    FAIL() << "nothing was thrown";
  } catch (std::runtime_error const& error) {
    EXPECT_STREQ(error.what(), "the cause");
  }
}

TEST(Threads, MakeANewWorldAfterOneThatEnded) {
  for (int i = 0; i < 3; ++i) {
    for (Ending const& e : run_as_threads("other_m")) EXPECT_EQ(e.code, kRaised);
    for (Ending const& e : run_as_threads("ends_apart")) EXPECT_EQ(e.code, kFine) << e.said;
  }
}

TEST(Threads, WaitNoLongerThanTheLimitForARankThatDoesNotCall) {
  WorldOptions options;
  options.limit_seconds = 0.5;
  std::mutex mutex;
  std::string said;
  EXPECT_THROW(run_threads(3, options,
                           [&](World& world) {
                             SmallCall call(world, 64);
                             if (world.rank() == 2) std::this_thread::sleep_for(std::chrono::seconds(1));
                             try {
                               call.run(64);
                             } catch (Error const& error) {
                               std::lock_guard lock(mutex);
                               said = error.what();
                               throw;
                             }
                           }),
               Error);
  EXPECT_NE(said.find("partial sums from rank 2"), std::string::npos) << said;
}

TEST(Bootstrap, MayBeACallable) {
  constexpr int kRanks = 3;
  MeetingPoint point(kRanks);
  std::vector<std::string> said(kRanks);
  auto rank_body = [&](int rank) {
    try {
      auto const world = World::processes(bootstrap_from(
          rank, kRanks, [&point, rank](std::string_view mine) { return point.all_gather(rank, mine, 10); }));
      SmallCall call(*world, 64);
      for (int i = 0; i < 20; ++i) call.run(17 + i, i);
      for (auto const& word : world->all_gather(std::to_string(rank))) said[rank] += word;
    } catch (std::exception const& error) {
      said[rank] = error.what();
    }
  };
  std::vector<std::thread> ranks;
  for (int r = 0; r < kRanks; ++r) ranks.emplace_back(rank_body, r);
  for (auto& rank : ranks) rank.join();
  EXPECT_EQ(said, (std::vector<std::string>{"012", "012", "012"}));
}

TEST(Bootstrap, RefusesNonsense) {
  auto kind_of = [](auto&& f) {
    try {
      f();
    } catch (Error const& error) {
      return error.kind();
    }
    return ErrorKind::kInternal;
  };
  auto gather = [](std::string_view) { return std::vector<std::string>(3); };
  EXPECT_EQ(kind_of([&] { bootstrap_from(2, 2, gather); }), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of([&] { bootstrap_from(-1, 2, gather); }), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of([&] { World::processes(bootstrap_from(0, 2, gather)); }), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of([&] { World::processes(bootstrap_from(0, 17, gather)); }), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of([&] { World::processes(nullptr); }), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of([&] { run_threads(17, {}, [](World&) {}); }), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of([&] { run_threads(0, {}, [](World&) {}); }), ErrorKind::kInvalid);
}

}  // namespace
}  // namespace flux::test
