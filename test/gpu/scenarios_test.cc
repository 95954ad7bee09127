// The scenario list of the host engine, by the real kernels, with all ranks on one GPU.
#include <fmt/format.h>

#include <mutex>
#include <set>

#include "gpu/scenario_list.h"
#include "gpu/world.h"
#include "world/gpu.h"

namespace flux::test {
namespace {

/// Tensors of one rank on the GPU, until the next scenario.
class GpuMemory final : public Memory {
 public:
  ~GpuMemory() override { clear(); }
  /// Without cudaFree, which would wait for the other ranks' kernels.
  void clear() {
    for (void* block : blocks_) must(cudaFreeAsync(block, stream_));
    blocks_.clear();
    stream_.settle();
  }
  Tensor place(Tensor const& host) override {
    Tensor there = host;
    int64_t const bytes = host.rows * host.stride * size_of(host.dtype);
    must(cudaMallocAsync(&there.data, std::max<int64_t>(bytes, 16), stream_));
    blocks_.push_back(there.data);
    must(cudaMemcpyAsync(there.data, host.data, bytes, cudaMemcpyHostToDevice, stream_));
    return there;
  }
  void fetch(Tensor const& placed, Tensor const& host) override {
    if (!placed) return;
    int64_t const bytes = host.rows * host.stride * size_of(host.dtype);
    // The driver may hold a lock while it waits to copy to pageable memory, and the other ranks, threads of this
    // process, could not enqueue what our stream waits for. So nothing is left to wait for.
    stream_.settle();
    must(cudaMemcpyAsync(host.data, placed.data, bytes, cudaMemcpyDeviceToHost, stream_));
    stream_.settle();
  }
  Stream stream() override { return stream_; }

 private:
  OwnStream stream_;
  std::vector<void*> blocks_;
};

/// One world for all scenarios, which have as many ranks.
void expect_exact(int ranks, std::vector<Scenario> const& scenarios) {
  WorldOptions options;
  options.limit_seconds = 20;
  std::mutex mutex;
  auto body = [&](World& world) {
    GpuMemory memory;  // one stream for all: a GPU has 32 queues
    for (Scenario const& s : scenarios) {
      memory.clear();
      std::string failure;
      try {
        failure = run_scenario(world, s, memory);
      } catch (Error const& error) {
        ADD_FAILURE() << s.describe() << ": " << error.what();
        throw;
      }
      std::lock_guard lock(mutex);
      EXPECT_EQ(failure, "");
    }
  };
  EXPECT_NO_THROW(run_shared_gpu(ranks, options, body)) << ranks << " ranks";
}

using Scenarios = SharedGpuWorld;
class ScenariosOf : public Scenarios, public testing::WithParamInterface<int> {};

std::vector<int> rank_counts() {
  std::set<int> counts;
  for (Scenario const& s : gpu_scenarios()) counts.insert(s.ranks);
  return {counts.begin(), counts.end()};
}

TEST_P(ScenariosOf, Ranks) {
  std::vector<Scenario> list = gpu_scenarios(chip_of_device(0).engine);
  std::erase_if(list, [](Scenario const& s) { return s.ranks != GetParam(); });
  expect_exact(GetParam(), list);
}
INSTANTIATE_TEST_SUITE_P(All, ScenariosOf, testing::ValuesIn(rank_counts()), testing::PrintToStringParamName());

// Few and small: for compute-sanitizer.
TEST_F(Scenarios, SmallOnesAreExact) {
  std::vector<Scenario> list;
  EngineKind const engine = chip_of_device(0).engine;
  for (Op op : {Op::kAllGatherGemm, Op::kGemmReduceScatter, Op::kGemmAllReduce})
    for (auto line : {"", "transport=remote route=stage shots=one", "transport=pull route=sum", "fused=no",
                      "copies=2 route=stage", "path=ring route=ring"}) {
      Scenario s;
      s.op = op, s.m = 67, s.n = 48, s.k = 64, s.ranks = 2, s.plan = parse_plan(line);
      if (on_gpu(s, engine)) list.push_back(for_gpu(s, 9, engine));  // one kernel: a sanitizer instruments each
    }
  expect_exact(2, list);
}

}  // namespace
}  // namespace flux::test
