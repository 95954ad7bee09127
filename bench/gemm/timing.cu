#include "bench/gemm/timing.h"

#include <algorithm>
#include <numeric>

#include "bench/gemm/cuda.h"
#include "tile/signal.h"

namespace flux::bench {
namespace {

// Holds the stream while the host enqueues what is timed, so that no launch latency is measured.
__global__ void occupy(int64_t ns) {
  int64_t const begin = now_ns();
  while (now_ns() - begin < ns) __nanosleep(500);
}

}  // namespace

double GpuMethod::quantile(double q) const {
  std::vector<double> sorted = us;
  std::sort(sorted.begin(), sorted.end());
  return sorted.at(static_cast<size_t>(q * (sorted.size() - 1) + 0.5));
}

void measure(std::vector<GpuMethod>& methods, int rounds, int repeat, std::mt19937& random) {
  cudaEvent_t begin, end;
  must(cudaEventCreate(&begin));
  must(cudaEventCreate(&end));
  std::vector<size_t> order(methods.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (int round = -1; round < rounds; ++round) {  // the first one warms up
    std::shuffle(order.begin(), order.end(), random);
    for (size_t const i : order) {
      occupy<<<1, 1>>>(40'000);
      must(cudaEventRecord(begin));
      for (int r = 0; r < repeat; ++r) methods[i].run();
      must(cudaEventRecord(end));
      must(cudaEventSynchronize(end));
      float ms = 0;
      must(cudaEventElapsedTime(&ms, begin, end));
      if (round >= 0) methods[i].us.push_back(1e3 * ms / repeat);
    }
  }
  must(cudaEventDestroy(begin));
  must(cudaEventDestroy(end));
}

}  // namespace flux::bench
