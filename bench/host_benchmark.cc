// The host engine against one Eigen product of the same flops on the same cores, and the cost of a step of the
// schedule.
#include <benchmark/benchmark.h>

#include <Eigen/Core>
#include <thread>

#include "bench/case.h"
#include "bench/random.h"

namespace flux::bench {
namespace {

constexpr int64_t kM = 2048, kN = 4096, kK = 4096;
constexpr int kRanks = 4;

// All cores, each a slice of the columns: what the fused operators are allowed 1.3 times of.
void eigen_product(benchmark::State& state) {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  int const cores = static_cast<int>(std::thread::hardware_concurrency());
  RowMajor const a = RowMajor::Random(kM, kK), b = RowMajor::Random(kN, kK);
  std::vector<RowMajor> c(cores, RowMajor(kM, kN / cores));
  for (auto _ : state) {
    std::vector<std::thread> threads;
    for (int i = 0; i < cores; ++i)
      threads.emplace_back([&, i] { c[i].noalias() = a * b.middleRows(kN / cores * i, kN / cores).transpose(); });
    for (auto& thread : threads) thread.join();
  }
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 * kM * kN * kK, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(eigen_product)->Unit(benchmark::kMillisecond)->UseRealTime();

void fused(benchmark::State& state, Op op) {
  WorldOptions options;
  run_threads(kRanks, options, [&](World& world) {
    Problem problem;
    problem.op = op, problem.m = kM, problem.n = kN, problem.k = kK;
    Case test(world, problem, {}, 1);
    test.run(true);
    world.barrier();
    if (world.rank() == 0) {
      for (auto _ : state) {
        world.all_gather("go");
        test.run(true);
        world.barrier();
      }
      world.all_gather("stop");
    } else {
      while (world.all_gather("")[0] == "go") {
        test.run(true);
        world.barrier();
      }
    }
  });
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 * kM * kN * kK, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(fused, ag_gemm, Op::kAllGatherGemm)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(fused, gemm_rs, Op::kGemmReduceScatter)->Unit(benchmark::kMillisecond)->UseRealTime();

void schedule_step(benchmark::State& state) {
  Schedule const schedule = arrange(Order::kArrival, Tiling::kAcross, {16384 + 5, 8, 1}, 128, 48, 4, 3);
  for (auto _ : state) {
    int hint = 0;
    int64_t sum = 0;
    for (int64_t i = 0; i < schedule.size(); ++i) sum += schedule.at(i, hint).row;
    benchmark::DoNotOptimize(sum);
  }
  state.counters["s/tile"] =
      benchmark::Counter(static_cast<double>(schedule.size()),
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(schedule_step);

}  // namespace
}  // namespace flux::bench
