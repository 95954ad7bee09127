#pragma once
// Ranks that share GPU 0, for the tests of whole operators.
#include <cstdlib>
#include <functional>

#include "flux/world.h"
#include "gpu/device.h"

namespace flux::test {

class SharedGpuWorld : public OnHopper {
 protected:
  // Before the first use of CUDA in this process: fewer queues than streams, and ranks hold each other up.
  static void SetUpTestSuite() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); }
};

}  // namespace flux::test
