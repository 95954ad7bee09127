#include "bench/gemm/timing.h"

#include <algorithm>
#include <numeric>

#include "bench/gemm/cuda.h"
#include "bench/gemm/lockstep.h"
#include "tile/signal.h"

namespace flux::bench {

double GpuMethod::quantile(double q) const {
  std::vector<double> sorted = us;
  std::sort(sorted.begin(), sorted.end());
  return sorted.at(static_cast<size_t>(q * (sorted.size() - 1) + 0.5));
}

void time_rounds(std::vector<GpuMethod>& methods, int warm_up, int rounds, int repeat, CUstream_st* stream,
                 std::mt19937& random, std::function<void(size_t)> const& hold, std::function<void(size_t)> const& run,
                 Lockstep* ranks) {
  std::mt19937 agreed(ranks ? ranks->first(static_cast<uint32_t>(random())) : 0);
  cudaEvent_t begin, end;
  must(cudaEventCreate(&begin));
  must(cudaEventCreate(&end));
  std::vector<size_t> order(methods.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (int round = -warm_up; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), ranks ? agreed : random);
    for (size_t const i : order) {
      if (methods[i].timed) {
        double const us = methods[i].timed();
        if (round >= 0) methods[i].us.push_back(us);
        continue;
      }
      hold(i);
      if (ranks) ranks->meet(stream);
      must(cudaEventRecord(begin, stream));
      run(i);
      must(cudaEventRecord(end, stream));
      if (ranks)
        ranks->await(end);
      else
        must(cudaEventSynchronize(end));
      float ms = 0;
      must(cudaEventElapsedTime(&ms, begin, end));
      if (round >= 0) methods[i].us.push_back(1e3 * ms / repeat);
    }
  }
  must(cudaEventDestroy(begin));
  must(cudaEventDestroy(end));
  if (ranks) ranks->keep_slowest(methods);
}

void measure(std::vector<GpuMethod>& methods, int rounds, int repeat, std::mt19937& random, cudaStream_t stream,
             Turns const& turns, Lockstep* ranks) {
  constexpr int64_t kLeastNs = 40'000, kMostNs = 20'000'000, kMeetingNs = 60'000;
  std::vector<int64_t> hold_ns(methods.size(), kLeastNs);  // longer than the host took so far
  int turn = 0;
  auto const held = [&](size_t i) {
    turns.take(turn++ % turns.count);
    hold(hold_ns[i] + (ranks ? kMeetingNs : 0), stream);
  };
  auto const run = [&](size_t i) {
    int64_t const begin = now_ns();
    for (int r = 0; r < repeat; ++r) methods[i].run();
    hold_ns[i] = std::clamp((now_ns() - begin) * 3 / 2, hold_ns[i], kMostNs);
  };
  time_rounds(methods, 2, rounds, repeat, stream, random, held, run, ranks);
  turns.take(0);
}

}  // namespace flux::bench
