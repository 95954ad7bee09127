// Worlds and operators over several nodes, on a fake GPU and with a fake NCCL between the nodes.
#include <fstream>

#include "gpu/fake/on_fake_gpu.h"
#include "temporary_folder.h"

namespace flux::test {
namespace {

class FakeNodes : public OnFakeGpu {
 protected:
  void SetUp() override {
    setenv("FLUX_TEST_GPUS", "16", 1);
    find_nccl_in(FLUX_FAKE_NCCL);
  }
  static void expect_refused(ErrorKind kind, std::string const& part) {
    for (Ending const& e : run_as_processes("world_of_nodes")) {
      EXPECT_EQ(e.code, kRaised) << e.said;
      EXPECT_EQ(e.kind, kind) << e.said;
      EXPECT_HAS(e.said, part);
    }
  }
};

TEST_F(FakeNodes, ShareMemoryWithinANodeByEitherWay) {
  expect_fine("world_of_nodes");
  setenv("FLUX_TEST_FAULT", "*:cuMemCreate:*", 1);
  expect_fine("world_of_nodes");
}

TEST_F(FakeNodes, AllScenarios) {
  for (auto program : {"nodes2", "nodes4", "nodes6"}) expect_fine(program);
}

TEST_F(FakeNodes, ScenariosByTheEngineOfOtherChips) {
  setenv("FLUX_ENGINE", "sm80", 1);
  expect_fine("some_on_nodes4");
}

TEST_F(FakeNodes, ScenariosAcrossPcie) {
  setenv("FLUX_TEST_FAULT", "*:pcie:*", 1);
  expect_fine("some_on_nodes4");
}

// Where ranks of a node do not reach each other.
TEST_F(FakeNodes, OrGoThroughOneCommunicator) {
  setenv("FLUX_PEERS", "nccl", 1);
  expect_fine("nodes4_through_nccl");
  unsetenv("FLUX_PEERS"), setenv("FLUX_TEST_FAULT", "1:bit:1", 1);
  expect_fine("nodes4_through_nccl");
}

TEST_F(FakeNodes, NeedAnNcclThatServes) {
  setenv("FLUX_TEST_NCCL_VERSION", "21403", 1);
  expect_refused(ErrorKind::kUnsupported, "between nodes NCCL carries what GPUs send, and NCCL 2.14.3 is here");
  TemporaryFolder folder;
  std::ofstream(folder / "libnccl.so.2") << "no library";
  setenv("LD_LIBRARY_PATH", folder.path().c_str(), 1);
  expect_refused(ErrorKind::kUnsupported, "and NCCL cannot be opened");
}

TEST_F(FakeNodes, DoNotMeetInHostMemory) {
  setenv("FLUX_PEERS", "host", 1);
  expect_refused(ErrorKind::kUnsupported, "FLUX_PEERS=host is for one node, and the ranks are on 2");
}

TEST_F(FakeNodes, EndTogetherWhenARankDoesNotCome) { expect_an_end("absent_node", -1, "from rank 1", 8); }

TEST_F(FakeNodes, EndTogetherWhenARankIsKilled) {
  expect_an_end("killed_node", 1, "rank 1", 4);
  for (int after_us : {0, 5000, 20'000, 40'000, 80'000, 160'000}) {
    setenv("FLUX_TEST_AFTER_US", std::to_string(after_us).c_str(), 1);
    expect_an_end("killed_node_at", 1, "rank 1", 6);
  }
}

TEST_F(FakeNodes, EndTogetherWhenNcclReportsAnError) {
  expect_an_end("network_fails", -1, "rank 1 heard from NCCL: 'planted'", 4);
}

}  // namespace
}  // namespace flux::test
