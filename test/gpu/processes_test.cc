// Ranks as processes on GPU 0: whole operators byte for byte, and what happens when one of them is lost. The programs:
// programs.cc.
#include <signal.h>

#include <chrono>
#include <filesystem>

#include "gpu/device.h"
#include "world/cuda/nccl.h"
#include "world/program.h"

namespace flux::test {
namespace {

class Processes : public OnHopper {};
class EndWell : public Processes, public testing::WithParamInterface<char const*> {};
INSTANTIATE_TEST_SUITE_P(Processes, EndWell,
                         testing::Values("links", "scenarios2", "scenarios3", "graph2", "graph3", "by_rank", "by_ipc",
                                         "scenarios2_by_host", "scenarios3_by_host", "graph2_by_host", "second_world",
                                         "come_and_go", "no_such_gpu", "too_much_memory"),
                         [](auto const& info) { return std::string(info.param); });

class NodesEndWell : public EndWell {};
INSTANTIATE_TEST_SUITE_P(Processes, NodesEndWell, testing::Values("nodes2", "nodes4", "graph_over_nodes"),
                         [](auto const& info) { return std::string(info.param); });

TEST_P(NodesEndWell, WithNcclBetween) {
  if (auto const none = no_nccl_for_rails(); !none.empty()) GTEST_SKIP() << none;
  for (Ending const& e : run_as_processes(GetParam())) EXPECT_EQ(e.code, kFine) << e.said;
}

TEST_P(EndWell, OnGpu) {
  int status = -1;
  auto const endings = run_as_processes(GetParam(), &status);
  EXPECT_EQ(status, 0);
  for (size_t r = 0; r < endings.size(); ++r)
    EXPECT_EQ(endings[r].code, kFine) << "rank " << r << ": " << endings[r].said;
}

// Every rank but rank 1 ends with an error that names it.
void expect_survivors_name_rank_1(std::vector<Ending> const& endings, double within_seconds) {
  for (size_t r = 0; r < endings.size(); ++r) {
    if (r == 1) continue;
    EXPECT_EQ(endings[r].code, kRaised) << "rank " << r << ": " << endings[r].said;
    EXPECT_EQ(endings[r].kind, ErrorKind::kTimeout) << endings[r].said;
    EXPECT_NE(endings[r].said.find("rank 1"), std::string::npos) << endings[r].said;
    EXPECT_LT(endings[r].seconds, within_seconds);
  }
}

void expect_nothing_left_over() {
  for (auto const& entry : std::filesystem::directory_iterator("/dev/shm"))
    EXPECT_EQ(entry.path().filename().string().find("flux"), std::string::npos) << entry.path();
}

TEST_F(Processes, OneKilledInACallEndsTheOthersAtOnceAndANewWorldWorks) {
  int status = 0;
  auto const endings = run_as_processes("killed", &status);
  EXPECT_EQ(endings[1].code, -1) << "the killed rank left word";
  EXPECT_EQ(status, 128 + SIGKILL);
  expect_survivors_name_rank_1(endings, 15);  // the limit of a wait is 20 s
  expect_nothing_left_over();
  for (Ending const& e : run_as_processes("graph2")) EXPECT_EQ(e.code, kFine) << e.said;
}

TEST_F(Processes, OneKilledInACallThroughHostMemoryEndsTheOthersAtOnce) {
  expect_survivors_name_rank_1(run_as_processes("killed_by_host"), 30);  // the limit of a wait is 60 s
  expect_nothing_left_over();
}

TEST_F(Processes, OneLostOnAnotherNodeEndsTheOthersWithinTheLimit) {
  if (auto const none = no_nccl_for_rails(); !none.empty()) GTEST_SKIP() << none;
  expect_survivors_name_rank_1(run_as_processes("killed_over_nodes"), 20);
  expect_survivors_name_rank_1(run_as_processes("stopped_over_nodes"), 30);
  expect_nothing_left_over();
}

TEST_F(Processes, OneStoppedInACallEndsTheOthersWithinTheLimit) {
  int status = 0;
  auto const endings = run_as_processes("stopped", &status);
  expect_survivors_name_rank_1(endings, 30);  // the limit of a wait is 10 s
  expect_nothing_left_over();
  for (Ending const& e : run_as_processes("graph2")) EXPECT_EQ(e.code, kFine) << e.said;
}

}  // namespace
}  // namespace flux::test
