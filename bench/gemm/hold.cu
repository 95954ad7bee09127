#include "bench/gemm/cuda.h"
#include "bench/gemm/timing.h"
#include "tile/signal.h"

namespace flux::bench {
namespace {

// Holds the stream while the host enqueues what is timed, so that no launch latency is measured.
__global__ void occupy(int64_t ns) {
  int64_t const begin = now_ns();
  while (now_ns() - begin < ns) __nanosleep(500);
}

}  // namespace

void hold(int64_t ns, cudaStream_t stream) {
  occupy<<<1, 1, 0, stream>>>(ns);
  must(cudaGetLastError());
}

}  // namespace flux::bench
