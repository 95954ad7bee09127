// The scenario list of the host engine, by the real kernels, with all ranks on one GPU.
#include <fmt/format.h>

#include <mutex>
#include <set>

#include "gpu/world.h"
#include "op/scenario.h"

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

constexpr int kMostRanks = 8;  // on one GPU

bool on_gpu(Scenario const& s) {
  bool const round = s.ordered && s.plan.route == RouteKind::kRing;  // relayed sums round to 16 bits at every rank
  bool const pulled = s.plan.path == Path::kRing && s.plan.transport != Transport::kPush;
  return s.ranks <= kMostRanks && !round && !pulled && !s.plan.wide_slots;
}

/// As the GPU takes it: 16-bit operands, widths in units of 8, tiles of the engine's table.
Scenario for_gpu(Scenario s, int number) {
  static constexpr std::string_view kTiles[] = {"tile=auto", "tile=64x64",   "tile=256x128", "tile=64x96",
                                                "tile=auto", "tile=256x136", "tile=128x512", "tile=256x224"};
  if (s.dtype == DType::kF32 || s.dtype == DType::kF64) s.dtype = number % 3 == 2 ? DType::kF16 : DType::kBF16;
  if (s.ordered) s.dtype = DType::kBF16;  // beyond fp16
  s.n = (s.n + 15) / 16 * 16, s.k = (s.k + 7) / 8 * 8;
  if (number % 3 == 1 && s.plan.copy_blocks == kChosenCopies) s.plan.copy_blocks = 1;
  s.plan = parse_plan(s.gated ? "tile=auto" : kTiles[number % std::size(kTiles)], s.plan);
  return s;
}

std::vector<Scenario> gpu_scenarios() {
  std::vector<Scenario> list;
  auto add = [&](Scenario const& s) {
    if (on_gpu(s)) list.push_back(for_gpu(s, static_cast<int>(list.size())));
  };
  for (Scenario const& s : all_scenarios()) add(s);
  // One row, sent after the GEMM: fewer rows than owners, and words that count whole shards.
  for (int ranks : {3, 8}) {
    Scenario s;
    s.op = Op::kGemmReduceScatter, s.m = 1, s.n = 48, s.k = 128, s.ranks = ranks, s.calls = 3;
    s.plan = parse_plan("fused=no");
    add(s);
  }
  // Many tiles, several to a block.
  for (auto [m, n, k, ranks] : {std::array{330, 344, 72, 3}, {520, 160, 64, 8}, {515, 528, 40, 2}})
    for (Op op : {Op::kAllGatherGemm, Op::kGemmReduceScatter, Op::kGemmAllReduce})
      for (auto line : {"", "comm_rows=64 k_slices=2 route=stage shots=one", "transport=pull route=sum",
                        "transport=remote fused=no", "buffers=1 order=naive", "store=vector",
                        "store=bulk transport=remote route=sum", "store=vector route=stage shots=one",
                        "copies=2 route=stage comm_rows=64", "copies=1 path=ring route=ring",
                        "copies=2 transport=pull route=stage buffers=1"}) {
        Scenario s;
        s.op = op, s.m = m, s.n = n, s.k = k, s.ranks = ranks, s.plan = parse_plan(line), s.calls = 2;
        add(s);
      }
  return list;
}

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
  std::vector<Scenario> list = gpu_scenarios();
  std::erase_if(list, [](Scenario const& s) { return s.ranks != GetParam(); });
  expect_exact(GetParam(), list);
}
INSTANTIATE_TEST_SUITE_P(All, ScenariosOf, testing::ValuesIn(rank_counts()), testing::PrintToStringParamName());

// Few and small: for compute-sanitizer.
TEST_F(Scenarios, SmallOnesAreExact) {
  std::vector<Scenario> list;
  for (Op op : {Op::kAllGatherGemm, Op::kGemmReduceScatter, Op::kGemmAllReduce})
    for (auto line : {"", "transport=remote route=stage shots=one", "transport=pull route=sum", "fused=no",
                      "copies=2 route=stage", "path=ring route=ring"}) {
      Scenario s;
      s.op = op, s.m = 67, s.n = 48, s.k = 64, s.ranks = 2, s.plan = parse_plan(line);
      list.push_back(for_gpu(s, 9));  // one kernel: a sanitizer instruments each
    }
  expect_exact(2, list);
}

}  // namespace
}  // namespace flux::test
