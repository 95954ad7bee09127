// Ranks as processes: the scenario list, and what happens when one of them is lost.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "world/program.h"

namespace flux::test {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(std::function<void()> const& f) {
  auto const start = Clock::now();
  f();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Scenarios : public testing::TestWithParam<char const*> {};
INSTANTIATE_TEST_SUITE_P(Processes, Scenarios,
                         testing::Values("scenarios1", "scenarios2", "scenarios3", "scenarios5", "scenarios16",
                                         "nodes4", "nodes8"),
                         [](auto const& info) { return std::string(info.param); });

TEST_P(Scenarios, AreExact) {
  int status = -1;
  auto const endings = run_as_processes(GetParam(), &status);
  EXPECT_EQ(status, 0);
  for (Ending const& e : endings) EXPECT_EQ(e.code, kFine) << e.said;
}

// Every rank but the victim ends with the same kind of error, which names it.
void expect_survivors_name(int victim, std::vector<Ending> const& endings, double within_seconds) {
  for (size_t r = 0; r < endings.size(); ++r) {
    if (static_cast<int>(r) == victim) continue;
    Ending const& e = endings[r];
    EXPECT_EQ(e.code, kRaised) << "rank " << r << ": " << e.said;
    EXPECT_EQ(e.kind, ErrorKind::kTimeout);
    EXPECT_NE(e.said.find("rank " + std::to_string(victim)), std::string::npos) << e.said;
    EXPECT_LT(e.seconds, within_seconds);
  }
}

// Shared memory of processes that are gone.
std::vector<std::string> left_over() {
  std::vector<std::string> names;
  for (auto const& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (entry.path().filename().string().find("flux") != std::string::npos) names.push_back(entry.path().string());
  return names;
}

TEST(LostRank, KilledInACallEndsTheOthersAtOnce) {
  int status = 0;
  std::vector<Ending> endings;
  double const seconds = seconds_of([&] { endings = run_as_processes("killed", &status); });
  EXPECT_EQ(endings[1].code, -1) << "the killed rank left word";
  expect_survivors_name(1, endings, 2.0);  // it died after 0.2 s; the limit of a wait is 2 s
  EXPECT_EQ(status, 128 + SIGKILL);
  EXPECT_LT(seconds, 4.0);
  EXPECT_TRUE(left_over().empty()) << left_over()[0];
}

TEST(LostRank, IsTheOneNamedWhateverWaitersNoteMeanwhile) {
  expect_survivors_name(1, run_as_processes("killed_beside_waiters"), 2.0);
}

TEST(LostRank, StalledInACallEndsTheOthersWithinTheLimit) {
  int status = 0;
  std::vector<Ending> endings;
  double const seconds = seconds_of([&] { endings = run_as_processes("stalled", &status); });
  expect_survivors_name(1, endings, 4.0);
  EXPECT_EQ(status, kRaised);
  EXPECT_LT(seconds, 6.0);  // the launcher gives the stalled one another second
  EXPECT_TRUE(left_over().empty()) << left_over()[0];
}

// Rank 1 of the program leaves the world while the others count on it.
void expect_leaving_ends_others(char const* program) {
  auto const endings = run_as_processes(program);
  EXPECT_EQ(endings[1].code, kFine);
  expect_survivors_name(1, endings, 2.0);
}

TEST(LostRank, ThatThrowsEndsTheOthersAtOnce) {
  int status = 0;
  auto const endings = run_as_processes("throws", &status);
  EXPECT_EQ(endings[1].said, "rank 1 has had enough");
  expect_survivors_name(1, endings, 2.0);
  EXPECT_TRUE(status == kWrong || status == kRaised) << status;
}

TEST(LostRank, ThatLeavesTheWorldEndsWhoeverCountsOnIt) { expect_leaving_ends_others("leaves"); }

TEST(LostRank, ThatLeavesTheWorldEndsNobodyElse) {
  for (Ending const& e : run_as_processes("ends_apart")) EXPECT_EQ(e.code, kFine) << e.said;
}

// Two nodes of two ranks: whoever shares no memory with the lost one hears of it along its rail.
TEST(LostRank, KilledInACallEndsOtherNodesAtOnce) { expect_survivors_name(1, run_as_processes("nodes_killed"), 2.0); }
// A wait across nodes may be the first to give up; it knows whom it waited for, and not whom that one waited for.
TEST(LostRank, StalledInACallEndsOtherNodesWithinTheLimit) {
  auto const endings = run_as_processes("nodes_stalled");
  for (int r : {0, 2, 3}) {
    Ending const& e = endings[r];
    EXPECT_EQ(e.code, kRaised) << e.said;
    EXPECT_EQ(e.kind, ErrorKind::kTimeout);
    EXPECT_LT(e.seconds, 4.5);
    bool const names = e.said.find("rank 1") != std::string::npos;
    EXPECT_TRUE(names || e.said.find("on another node") != std::string::npos) << e.said;
  }
}
TEST(LostRank, ThatThrowsEndsOtherNodesAtOnce) {
  auto const endings = run_as_processes("nodes_throws");
  EXPECT_EQ(endings[1].said, "rank 1 has had enough");
  expect_survivors_name(1, endings, 2.0);
}
TEST(LostRank, ThatLeavesTheWorldEndsOtherNodesThatCountOnIt) { expect_leaving_ends_others("nodes_leaves"); }
TEST(LostRank, ThatLeavesTheWorldEndsNobodyElseOnOtherNodes) {
  for (Ending const& e : run_as_processes("nodes_ends_apart")) EXPECT_EQ(e.code, kFine) << e.said;
}
TEST(LostNode, EndsTheOthersAtOnce) {
  auto const endings = run_as_processes("nodes_node_dies");
  for (int r : {0, 1}) {
    EXPECT_EQ(endings[r].code, kRaised) << endings[r].said;
    EXPECT_EQ(endings[r].kind, ErrorKind::kTimeout);
    bool const named =
        endings[r].said.find("rank 2") != std::string::npos || endings[r].said.find("rank 3") != std::string::npos;
    EXPECT_TRUE(named) << endings[r].said;
    EXPECT_LT(endings[r].seconds, 2.0);
  }
}

TEST(Bootstrap, GivesUpOnARankThatNeverComes) {
  auto const endings = run_as_processes("never_comes");
  for (int r : {0, 2}) {
    EXPECT_EQ(endings[r].code, kRaised);
    EXPECT_EQ(endings[r].kind, ErrorKind::kTimeout) << endings[r].said;
    EXPECT_LT(endings[r].seconds, 2.5);
  }
}

TEST(Bootstrap, LearnsAtOnceOfARankThatEnded) {
  auto const endings = run_as_processes("ends_early");
  expect_survivors_name(1, endings, 2.0);
}

}  // namespace
}  // namespace flux::test
