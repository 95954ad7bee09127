// Worlds and operators over several nodes, on a fake GPU and with a fake NCCL between the nodes.
#include <gtest/gtest.h>

#include <cstdlib>

#include "error_of.h"
#include "temporary_folder.h"
#include "world/program.h"

namespace flux::test {
namespace {

class FakeNodes : public testing::Test {
 protected:
  void SetUp() override {
    setenv("FLUX_TEST_GPUS", "16", 1);
    setenv("LD_LIBRARY_PATH", (std::string(FLUX_FAKE_NCCL) + ":" + path_).c_str(), 1);
  }
  void TearDown() override {
    setenv("LD_LIBRARY_PATH", path_.c_str(), 1);
    for (char const* variable : {"FLUX_ENGINE", "FLUX_PEERS", "FLUX_TEST_FAULT", "FLUX_TEST_GPUS",
                                 "FLUX_TEST_NCCL_FAILS", "FLUX_TEST_NCCL_VERSION"})
      unsetenv(variable);
  }
  static void expect_fine(std::string const& program) {
    for (Ending const& e : run_as_processes(program)) EXPECT_EQ(e.code, kFine) << program << ": " << e.said;
  }

 private:
  std::string const path_ = std::getenv("LD_LIBRARY_PATH") ? std::getenv("LD_LIBRARY_PATH") : "";
};

TEST_F(FakeNodes, ShareMemoryWithinANodeByEitherWay) {
  expect_fine("world_of_nodes");
  setenv("FLUX_TEST_FAULT", "*:cuMemCreate:*", 1);
  expect_fine("world_of_nodes");
}

TEST_F(FakeNodes, AllScenarios) {
  for (auto program : {"nodes2", "nodes4", "nodes6"}) expect_fine(program);
}

}  // namespace
}  // namespace flux::test
