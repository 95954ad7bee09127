#include "report/progress.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

namespace flux {
namespace {

TEST(Progress, ShowsShareBarAndTimeLeft) {
  EXPECT_EQ(progress_line("packing", 1, 4, 30, 60), "packing [========                         ]  25 %  1:30 left");
  EXPECT_EQ(progress_line("packing", 0, 4, 30, 30), "packing [              ]   0 %");
  EXPECT_EQ(progress_line("packing", 4, 4, 30, 32), "packing [=====] 100 %  0:00 left");
  EXPECT_EQ(progress_line("p", 1, 10'000, 3, 32), "p [        ]   0 %  8:19:57 left");
}

TEST(Progress, StaysWithinTheTerminal) {
  for (int columns = 0; columns < 120; ++columns)
    EXPECT_LE(progress_line("a rather long title", 5, 9, 100, columns).size(), static_cast<size_t>(columns));
  EXPECT_LE(progress_line("more done than there was", 11, 9, 1, 80).size(), 80u);
}

/// What is written to a terminal on stderr meanwhile.
template <class Act>
std::string on_a_terminal(Act&& act) {
  int terminal = -1, ours = -1;
  struct winsize const size = {24, 60, 0, 0};
  EXPECT_EQ(openpty(&ours, &terminal, nullptr, nullptr, &size), 0);
  int const before = dup(STDERR_FILENO);
  dup2(terminal, STDERR_FILENO);
  act();
  fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  std::string seen(4096, '\0');
  size_t count = 0;
  pollfd ready{ours, POLLIN, 0};
  while (poll(&ready, 1, 200) > 0 && count < seen.size()) {  // what was written last may come a moment later
    ssize_t const more = read(ours, seen.data() + count, seen.size() - count);
    if (more <= 0) break;
    count += static_cast<size_t>(more);
  }
  seen.resize(count);
  close(terminal), close(ours);
  return seen;
}

TEST(Progress, IsSilentForAMoment) {
  EXPECT_EQ(on_a_terminal([] { Progress("quick", 2).advance(); }), "");
}

TEST(Progress, AppearsAfterASecondAndGoes) {
  std::string const seen = on_a_terminal([] {
    Progress progress("slow", 4);
    std::this_thread::sleep_for(std::chrono::milliseconds(1010));
    progress.advance();
    progress.advance();  // too soon to be drawn
  });
  EXPECT_EQ(seen.find("\rslow [======="), 0u) << seen;
  EXPECT_NE(seen.find(" 25 %  0:03 left\033[K\r\033[K"), seen.npos) << seen;
}

}  // namespace
}  // namespace flux
