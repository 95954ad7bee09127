// How worlds of processes on GPUs come to be and end, on a fake GPU: every way of sharing memory, every step that can
// fail, links that lose bits or never end, ranks killed at any moment.
#include "gpu/fake/on_fake_gpu.h"
#include "world/gpu.h"

namespace flux::test {
namespace {

class FakeGpu : public OnFakeGpu {
 protected:
  static void set(char const* variable, std::string const& value) { setenv(variable, value.c_str(), 1); }

  // Every rank says the same, in time.
  static void expect_the_same_error(std::string const& program, ErrorKind kind, std::string const& part) {
    auto const endings = run_as_processes(program);
    for (Ending const& e : endings) {
      EXPECT_EQ(e.code, kRaised) << e.said;
      EXPECT_EQ(e.kind, kind) << e.said;
      EXPECT_EQ(e.said, endings[0].said);
      EXPECT_NE(e.said.find(part), std::string::npos) << e.said;
      EXPECT_LT(e.seconds, 4);
    }
  }
};

TEST_F(FakeGpu, TheEngineIsTheBestThatRunsOrTheOneThatIsNamed) {
  for (auto word : {"", "auto", "sm90"}) {
    set("FLUX_ENGINE", word);
    EXPECT_EQ(chip_of_device(0).engine, EngineKind::kSm90) << word;
    EXPECT_TRUE(chip_of_device(0).fp8);
  }
  set("FLUX_ENGINE", "sm80");
  EXPECT_EQ(chip_of_device(0).engine, EngineKind::kSm80);
  set("FLUX_ENGINE", "hopper");
  EXPECT_EQ(invalid([] { chip_of_device(0); }), "FLUX_ENGINE=hopper is none of auto, sm90, sm80");

  set("FLUX_TEST_CONSUMER", "1"), set("FLUX_ENGINE", "");
  EXPECT_EQ(chip_of_device(0).engine, EngineKind::kSm80);
  EXPECT_EQ(chip_of_device(0).shared_bytes, 99 * 1024);
  EXPECT_FALSE(chip_of_device(0).fp8);
  set("FLUX_ENGINE", "sm90");
  EXPECT_EQ(error_of(ErrorKind::kUnsupported, [] { chip_of_device(0); }),
            "FLUX_ENGINE=sm90 needs compute capability 9.0 and a build for it; GPU 0 has 8.6");
}

TEST_F(FakeGpu, ProcessesShareMemoryByVirtualMemory) {
  set("FLUX_TEST_FAULT", "*:cudaIpcGetMemHandle:*");
  expect_fine("worlds");
  expect_fine("worlds16");
}

TEST_F(FakeGpu, OrByIpcWhereOneRankHasNone) {
  for (auto fault : {"*:cuMemCreate:*", "1:cuMemExportToShareableHandle:*", "2:cuMemMap:*"}) {
    set("FLUX_TEST_FAULT", fault);
    expect_fine("worlds");
  }
}

// The first registrations, one a rank, are of the control blocks.
constexpr char const* kNoHostMemory = " 1:cudaHostRegister:3";

// A GPU that gives no access to another's, a link that loses a bit, or no way to share at all.
TEST_F(FakeGpu, OrMeetInHostMemory) {
  for (auto fault : {"1:cuMemMap:2", "1:cuMemSetAccess:3", "2:cuMemImportFromShareableHandle:1",
                     "*:cuMemCreate:* 1:cudaIpcOpenMemHandle:0", "1:cuMemCreate:* 0:cudaIpcGetMemHandle:*", "1:bit:0",
                     "1:bit:1", "1:bit:2"}) {
    set("FLUX_TEST_FAULT", fault);
    expect_fine("world_in_host_memory");
  }
  unsetenv("FLUX_TEST_FAULT"), set("FLUX_PEERS", "host");
  for (auto gpus : {"1", "4"}) {
    set("FLUX_TEST_GPUS", gpus);
    expect_fine("worlds_in_host_memory");
  }
}

TEST_F(FakeGpu, OrSayThatTheyCannot) {
  set("FLUX_TEST_FAULT", std::string("1:cuMemCreate:* 0:cudaIpcGetMemHandle:*") + kNoHostMemory);
  expect_the_same_error("worlds", ErrorKind::kUnsupported, "cannot share GPU memory");
  expect_the_same_error("worlds", ErrorKind::kUnsupported, "limits on locked memory (ulimit -l) forbid it");
}

TEST_F(FakeGpu, TheEnvironmentNamesTheWay) {
  set("FLUX_PEERS", "auto");
  expect_fine("worlds");
  set("FLUX_PEERS", "host"), set("FLUX_TEST_FAULT", "1:bit:1");
  expect_the_same_error("worlds", ErrorKind::kDevice,
                        "FLUX_PEERS=host; and ranks do not meet in host memory: the link from rank 1 to rank 2 (host "
                        "memory) does not work: ");
  set("FLUX_TEST_FAULT", kNoHostMemory);
  expect_the_same_error("worlds", ErrorKind::kDevice, "FLUX_PEERS=auto goes on to NCCL");
  unsetenv("FLUX_TEST_FAULT"), set("FLUX_PEERS", "nccl");
  expect_the_same_error("worlds", ErrorKind::kUnsupported, "FLUX_PEERS=nccl; and NCCL does not serve: ");
  set("FLUX_PEERS", "fast");
  expect_the_same_error("worlds", ErrorKind::kInvalid, "FLUX_PEERS=fast is none of auto, host, nccl");
  expect_the_same_error("differing_peers", ErrorKind::kInvalid,
                        "FLUX_PEERS is auto on rank 0 and host on rank 1; give every rank the same");
}

TEST_F(FakeGpu, RanksMayBeOnGpusOfTheirOwn) {
  for (auto gpus : {"1", "2", "4"}) {
    set("FLUX_TEST_GPUS", gpus);
    expect_fine("worlds_by_rank");
  }
  set("FLUX_TEST_GPUS", "0");
  expect_the_same_error("worlds_by_rank", ErrorKind::kUnsupported, "no GPU is visible");
}

// Behind the proof of links, which chooses how memory is shared.
TEST_F(FakeGpu, AStepThatFailsOnOneRankFailsOnAll) {
  for (auto step : {"cuMemCreate:2", "cuMemAddressReserve:4", "cuMemMap:4", "cuMemSetAccess:6",
                    "cuMemExportToShareableHandle:3", "cuMemImportFromShareableHandle:3", "cudaHostRegister:1"}) {
    SCOPED_TRACE(step);
    set("FLUX_TEST_FAULT", std::string("1:") + step);
    expect_the_same_error("worlds", ErrorKind::kDevice, "rank 1");
  }
  for (auto step : {"cudaMalloc:3", "cudaIpcGetMemHandle:2", "cudaIpcOpenMemHandle:3"}) {
    SCOPED_TRACE(step);
    set("FLUX_TEST_FAULT", std::string("*:cuMemCreate:* 1:") + step);
    expect_the_same_error("worlds", ErrorKind::kDevice, "rank 1");
  }
  set("FLUX_PEERS", "host"), set("FLUX_TEST_FAULT", "1:cudaHostRegister:7");
  expect_the_same_error("worlds_in_host_memory", ErrorKind::kDevice, "rank 1");
}

TEST_F(FakeGpu, ALinkThatLosesABitIsFound) {
  for (auto copy : {"1:bit:0", "1:bit:1", "1:bit:2"}) {
    set("FLUX_TEST_FAULT", std::string(copy) + kNoHostMemory);
    expect_the_same_error("worlds", ErrorKind::kDevice, "the link from rank 1");
  }
}

TEST_F(FakeGpu, ALinkThatNeverEndsIsGivenUp) {
  set("FLUX_TEST_FAULT", "1:stuck:*");
  expect_the_same_error("stuck", ErrorKind::kDevice, "the link from rank 1");
}

TEST_F(FakeGpu, ARankKilledAtAnyMomentEndsTheOthers) {
  for (int after_us : {0, 2000, 5000, 10'000, 15'000, 20'000, 30'000, 45'000, 70'000, 100'000}) {
    set("FLUX_TEST_AFTER_US", std::to_string(after_us));
    int status = 0;
    auto const endings = run_as_processes("killed", &status);
    EXPECT_NE(status, 0);  // of whoever the launcher saw end first
    for (int r : {0, 2}) {
      EXPECT_EQ(endings[r].code, kRaised) << endings[r].said;
      EXPECT_EQ(endings[r].kind, ErrorKind::kTimeout) << endings[r].said;
      EXPECT_NE(endings[r].said.find("rank 1"), std::string::npos) << endings[r].said;
      EXPECT_LT(endings[r].seconds, 3) << endings[r].said;
    }
  }
}

}  // namespace
}  // namespace flux::test
