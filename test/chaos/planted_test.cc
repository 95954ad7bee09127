// Ten bugs that systems of this kind have had. Each is planted in a process of its own, under ThreadSanitizer and
// random delays, and has to be found there; without it the same process ends clean.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "chaos/workload.h"
#include "tile/signal.h"

namespace flux::test {
namespace {

struct Ending {
  int code;
  std::string said;
};

// This program with `--workload`, the bug named by FLUX_BUG.
Ending run_with(Bug bug, std::string const& workload) {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  pid_t const pid = fork();
  if (pid == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    close(pipe_ends[0]), close(pipe_ends[1]);
    setenv("FLUX_BUG", std::to_string(static_cast<int>(bug)).c_str(), 1);
    setenv("TSAN_OPTIONS", fmt::format("halt_on_error=1 exitcode={}", static_cast<int>(kRace)).c_str(), 1);
    execl("/proc/self/exe", "test_chaos", "--workload", workload.c_str(), nullptr);
    _exit(127);
  }
  close(pipe_ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t n; (n = read(pipe_ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, n);
  close(pipe_ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), said};
}

// The workload is clean; with the bug it ends in one of the `ways`.
void expect_caught(Bug bug, std::string const& workload, std::set<int> const& ways) {
  Ending const without = run_with(Bug::kNone, workload);
  ASSERT_EQ(without.code, kClean) << "without a bug: " << without.said;
  Ending const with = run_with(bug, workload);
  EXPECT_TRUE(ways.count(with.code)) << "ended with " << with.code << ": " << with.said;
  std::string const how = with.code == kRace ? "race" : with.code == kWrong ? "wrong" : "error";
  testing::Test::RecordProperty("caught_as", how);
  fmt::print("caught as: {}\n", how == "race" ? how : with.said.substr(0, with.said.find('\n')));
}

TEST(Planted, NoWait) { expect_caught(Bug::kNoWait, "gather", {kRace, kWrong}); }
TEST(Planted, RelaxedAcquire) { expect_caught(Bug::kRelaxedAcquire, "gather", {kRace}); }
TEST(Planted, AnnounceBeforeStore) { expect_caught(Bug::kAnnounceBeforeStore, "scatter", {kRace, kWrong}); }
TEST(Planted, WrongSlot) { expect_caught(Bug::kWrongSlot, "ordered", {kWrong}); }
TEST(Planted, RaggedBand) { expect_caught(Bug::kRaggedBand, "scatter", {kRace, kWrong, kError}); }
TEST(Planted, ReuseWithoutCredit) { expect_caught(Bug::kNoCredit, "slow_owner", {kRace, kWrong}); }
TEST(Planted, StaleDigest) { expect_caught(Bug::kStaleDigest, "gather", {kRace, kWrong}); }
TEST(Planted, FlagArrayTooSmall) { expect_caught(Bug::kFlagArrayTooSmall, "many_words", {kRace, kWrong, kError}); }
TEST(Planted, LostAbort) { expect_caught(Bug::kLostAbort, "lost_peer", {kWrong}); }
TEST(Planted, WrongOrderInSlotSum) { expect_caught(Bug::kSumOrder, "ordered", {kWrong}); }

}  // namespace
}  // namespace flux::test
