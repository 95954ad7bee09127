#pragma once
// Ranks that share GPU 0, for the tests of whole operators.
#include <cstdlib>
#include <functional>

#include "flux/world.h"
#include "gpu/device.h"

namespace flux::test {

class SharedGpuWorld : public OnHopper {
 protected:
  static void SetUpTestSuite() {
    // Before the first use of CUDA in this process: fewer queues than streams, and ranks hold each other up.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    // Memory that goes back to the GPU is unmapped, which waits for kernels of all ranks.
    cudaMemPool_t pool;
    uint64_t keep = ~uint64_t{0};
    if (cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess)
      cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
    cudaGetLastError();
  }
};

}  // namespace flux::test
