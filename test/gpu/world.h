#pragma once
// Ranks that share GPU 0, for the tests of whole operators.
#include <cstdlib>
#include <functional>

#include "flux/world.h"
#include "gpu/device.h"

namespace flux::test {

class SharedGpuWorld : public testing::Test {
 protected:
  // Before the first use of CUDA in this process: fewer queues than streams, and ranks hold each other up.
  static void SetUpTestSuite() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); }
  void SetUp() override {
    int major = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess || major != 9)
      GTEST_SKIP() << "needs a GPU of compute capability 9.0";
  }
};

class OwnStream {
 public:
  OwnStream() { must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~OwnStream() { cudaStreamDestroy(stream_); }
  OwnStream(OwnStream const&) = delete;
  operator cudaStream_t() const { return stream_; }
  void settle() const { must(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace flux::test
