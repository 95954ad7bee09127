// Operators on a fake GPU: the code that decides on copies, tiles and words, where there is no GPU.
#include <fstream>

#include "gpu/fake/on_fake_gpu.h"
#include "temporary_folder.h"

namespace flux::test {
namespace {

class FakeOperators : public OnFakeGpu {
 protected:
  void SetUp() override { setenv("FLUX_TEST_GPUS", "16", 1); }
};

TEST_F(FakeOperators, AllScenarios) {
  for (auto program : {"scenarios2", "scenarios3"}) expect_fine(program);
}

TEST_F(FakeOperators, AllScenariosByTheEngineOfOtherChips) {
  setenv("FLUX_ENGINE", "sm80", 1);
  expect_fine("scenarios3");
}

TEST_F(FakeOperators, AllScenariosAcrossPcie) {
  setenv("FLUX_TEST_FAULT", "*:pcie:*", 1);
  expect_fine("scenarios3");
}

// Where a link does not work, or memory is not shared at all.
TEST_F(FakeOperators, MeetInHostMemory) {
  setenv("FLUX_TEST_FAULT", "1:bit:1", 1);
  expect_fine("scenarios2_in_host_memory");
  unsetenv("FLUX_TEST_FAULT"), setenv("FLUX_PEERS", "host", 1);
  for (auto program : {"scenarios3_in_host_memory", "refused_in_host_memory", "shared_buffers", "runs_ahead",
                       "never_over", "too_much_memory", "tunes"})
    expect_fine(program);
  setenv("FLUX_TEST_GPUS", "1", 1);
  expect_fine("refused_in_host_memory");
  expect_an_end("absent_from_host_memory", -1, "from rank 1", 8);
}

// Where they do not, or are told to.
TEST_F(FakeOperators, GoThroughNccl) {
  find_nccl_in(FLUX_FAKE_NCCL);
  setenv("FLUX_TEST_FAULT", "1:cuMemCreate:* 0:cudaIpcGetMemHandle:* 1:cudaHostRegister:3", 1);
  expect_fine("through_nccl");
  setenv("FLUX_TEST_FAULT", "1:bit:1 2:cudaHostRegister:3", 1);
  expect_fine("through_nccl");
  unsetenv("FLUX_TEST_FAULT"), setenv("FLUX_PEERS", "nccl", 1);
  expect_fine("through_nccl");
  expect_fine("scenarios3");
  // One rank does not come: the others end in time.
  expect_an_end("absent_from_nccl", -1, "", 8);
  setenv("FLUX_TEST_GPUS", "1", 1);
  for (Ending const& e : run_as_processes("through_nccl")) EXPECT_HAS(e.said, "one rank a GPU");
}

// For who compares with it.
TEST_F(FakeOperators, NcclServesBesideLinksThatWork) {
  find_nccl_in(FLUX_FAKE_NCCL);
  expect_fine("beside_nccl");
  setenv("FLUX_TEST_GPUS", "1", 1);
  for (Ending const& e : run_as_processes("beside_nccl")) EXPECT_HAS(e.said, "one rank a GPU");
}

TEST_F(FakeOperators, RanksTakeSamplesTogether) { expect_fine("lockstep"); }

TEST_F(FakeOperators, TheSuiteOfRealRanks) {
  find_nccl_in(FLUX_FAKE_NCCL);
  for (auto program : {"suite2", "suite3"}) expect_fine(program);
}

TEST_F(FakeOperators, ASampleWithoutEndEndsTheWorldInTime) {
  auto const endings = run_as_processes("sample_without_end");
  for (Ending const& e : endings) {
    EXPECT_EQ(e.code, kRaised) << e.said;
    EXPECT_LT(e.seconds, 5) << e.said;
  }
  EXPECT_EQ(endings[1].said, "rank 1: a sample did not end within 1 s");
  for (int r : {0, 2}) EXPECT_HAS(endings[r].said, "rank 1");
}

TEST_F(FakeOperators, ExchangesOfTheBaselines) {
  for (auto program : {"exchanges2", "exchanges5"}) expect_fine(program);
}

TEST_F(FakeOperators, SayWhatToDoWithoutNccl) {
  TemporaryFolder folder;
  std::ofstream(folder / "libnccl.so.2") << "no library";
  find_nccl_in(folder.path());
  setenv("FLUX_TEST_FAULT", "1:bit:1 1:cudaHostRegister:3", 1);
  for (Ending const& e : run_as_processes("through_nccl")) {
    EXPECT_EQ(e.kind, ErrorKind::kDevice) << e.said;
    EXPECT_HAS(e.said, "the link from rank 1");
    EXPECT_HAS(e.said, "the driver does not register");
    EXPECT_HAS(e.said, "install NCCL");
  }
}

TEST_F(FakeOperators, TuneThemselvesAlikeOnAllRanks) { expect_fine("tunes"); }

TEST_F(FakeOperators, LayersShareBuffers) { expect_fine("shared_buffers"); }

TEST_F(FakeOperators, TheHostRunsAheadSoFarAndAnOperatorWaitsForItsCalls) { expect_fine("runs_ahead"); }

TEST_F(FakeOperators, ACallThatNeverEndsKeepsItsMemory) { expect_fine("never_over"); }

TEST_F(FakeOperators, TooMuchMemoryIsSaidBeforeAnyIsTaken) { expect_fine("too_much_memory"); }

}  // namespace
}  // namespace flux::test
