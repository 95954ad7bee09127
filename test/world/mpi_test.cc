// Ranks as processes of mpirun.
#include <gtest/gtest.h>

#include <cstdlib>

#include "world/program.h"

namespace flux::test {
namespace {

class Mpirun : public testing::Test {
 protected:
  void SetUp() override {
#ifndef FLUX_WITH_MPI
    GTEST_SKIP() << "built without MPI";
#endif
    if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "no mpirun on this machine";
  }
};

TEST_F(Mpirun, RunsTheScenarios) {
  int status = -1;
  for (Ending const& e : run_under_mpirun("scenarios3", &status)) EXPECT_EQ(e.code, kFine) << e.said;
  EXPECT_EQ(status, 0);
}

TEST_F(Mpirun, RunsTheScenariosOnTwoNodes) {
  for (char const* program : {"nodes4", "nodes8"}) {
    int status = -1;
    for (Ending const& e : run_under_mpirun(program, &status)) EXPECT_EQ(e.code, kFine) << e.said;
    EXPECT_EQ(status, 0);
  }
}

// mpirun ends the others itself, perhaps before they have found out: there is no hang, and nobody ends well.
TEST_F(Mpirun, EndsWhenARankIsKilled) {
  int status = 0;
  for (Ending const& e : run_under_mpirun("killed", &status)) EXPECT_NE(e.code, kFine);
  EXPECT_NE(status, 0);
  EXPECT_NE(status, kHung);
}

TEST_F(Mpirun, EndsWhenARankIsStalled) {
  int status = 0;
  auto const endings = run_under_mpirun("stalled", &status);
  EXPECT_NE(status, 0);
  EXPECT_NE(status, kHung);
  int raised = 0;  // mpirun ends the slower survivors when the first has ended
  for (Ending const& e : endings) raised += e.code == kRaised && e.said.find("rank 1") != std::string::npos;
  EXPECT_GE(raised, 1);
}

TEST_F(Mpirun, FindsDifferentCallsAtOnce) {
  int status = 0;
  int raised = 0;
  for (Ending const& e : run_under_mpirun("other_m", &status))
    raised += e.code == kRaised && e.said.find("different calls") != std::string::npos && e.seconds < 5;
  EXPECT_GE(raised, 1);
  EXPECT_NE(status, kHung);
}

TEST_F(Mpirun, GivesUpOnARankThatNeverComes) {
  int status = 0;
  auto const endings = run_under_mpirun("never_comes", &status);
  EXPECT_TRUE(endings[0].code == kRaised || endings[2].code == kRaised);
  EXPECT_NE(status, kHung);
}

}  // namespace
}  // namespace flux::test
