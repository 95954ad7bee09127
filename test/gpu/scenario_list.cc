#include "gpu/scenario_list.h"

#include <array>
#include <string_view>

namespace flux::test {

constexpr int kMostRanks = 8;  // on one GPU

/// int8 and fp8 by the sm80 engine everywhere.
static bool by_mma(Scenario const& s, EngineKind engine) {
  return engine == EngineKind::kSm80 || size_of(s.dtype) == 1;
}

bool on_gpu(Scenario const& s, EngineKind engine) {
  bool const round = s.ordered && s.plan.route == RouteKind::kRing;  // relayed sums round to 16 bits at every rank
  bool const pulled = s.plan.path == Path::kRing && s.plan.transport != Transport::kPush;
  bool const adds = s.plan.route == RouteKind::kSum && by_mma(s, engine);
  return s.ranks <= kMostRanks && !round && !pulled && !adds && !s.plan.wide_slots;
}

Scenario for_gpu(Scenario s, int number, EngineKind engine) {
  using Tiles = std::array<std::string_view, 8>;
  static constexpr Tiles kSm90 = {"tile=auto", "tile=64x64",   "tile=256x128", "tile=64x96",
                                  "tile=auto", "tile=256x136", "tile=128x512", "tile=256x224"};
  static constexpr Tiles kSm80 = {"tile=auto",   "tile=64x64",  "tile=256x128", "tile=64x128",
                                  "tile=128x64", "tile=64x256", "tile=128x128", "tile=256x64"};
  Tiles const& tiles = by_mma(s, engine) ? kSm80 : kSm90;
  if (s.dtype == DType::kF32 || s.dtype == DType::kF64) s.dtype = number % 3 == 2 ? DType::kF16 : DType::kBF16;
  if (s.ordered) s.dtype = DType::kBF16;  // beyond fp16
  s.n = (s.n + 15) / 16 * 16, s.k = (s.k + k_unit(s.dtype) - 1) / k_unit(s.dtype) * k_unit(s.dtype);
  if (number % 3 == 1 && s.plan.copy_blocks == kChosenCopies) s.plan.copy_blocks = 1;
  s.plan = parse_plan(s.gated ? "tile=auto" : tiles[number % tiles.size()], s.plan);
  return s;
}

std::vector<Scenario> gpu_scenarios(EngineKind engine) {
  std::vector<Scenario> list;
  auto add = [&](Scenario const& s) {
    if (on_gpu(s, engine)) list.push_back(for_gpu(s, static_cast<int>(list.size()), engine));
  };
  for (Scenario const& s : all_scenarios()) add(s);
  // One row, sent after the GEMM: fewer rows than owners, and words that count whole shards.
  for (int ranks : {3, 8}) {
    Scenario s;
    s.op = Op::kGemmReduceScatter, s.m = 1, s.n = 48, s.k = 128, s.ranks = ranks, s.calls = 3;
    s.plan = parse_plan("fused=no");
    add(s);
  }
  // What decoding multiplies, and its neighbours.
  for (int m : {1, 2, 3, 7, 8, 17, 63, 64, 65, 255, 256})
    for (int ranks : {2, 3, 8}) {
      Scenario s;
      s.m = m, s.n = 336, s.k = 256, s.ranks = ranks, s.calls = 3;
      for (Op op : {Op::kAllGatherGemm, Op::kGemmReduceScatter, Op::kGemmAllReduce}) {
        s.op = op, s.plan = {}, s.residual = s.norm = op == Op::kGemmAllReduce;
        add(s);
      }
      for (auto line : {"route=packets shots=one", "route=packets shots=two"}) s.plan = parse_plan(line), add(s);
    }
  // Many tiles, several to a block.
  for (auto [m, n, k, ranks] : {std::array{330, 344, 72, 3}, {520, 160, 64, 8}, {515, 528, 40, 2}})
    for (Op op : {Op::kAllGatherGemm, Op::kGemmReduceScatter, Op::kGemmAllReduce})
      for (auto line : {"", "comm_rows=64 k_slices=2 route=stage shots=one", "transport=pull route=sum",
                        "transport=remote fused=no", "buffers=1 order=naive", "store=vector",
                        "store=bulk transport=remote route=sum", "store=vector route=stage shots=one",
                        "copies=2 route=stage comm_rows=64", "copies=1 path=ring route=ring",
                        "copies=2 transport=pull route=stage buffers=1", "comm_rows=shard route=push"}) {
        Scenario s;
        s.op = op, s.m = m, s.n = n, s.k = k, s.ranks = ranks, s.plan = parse_plan(line), s.calls = 2;
        add(s);
      }
  return list;
}

std::vector<Scenario> scenarios_over_nodes(int nodes, EngineKind engine) {
  std::vector<Scenario> list;
  auto add = [&](Scenario const& s) {
    if (on_gpu(s, engine)) list.push_back(for_gpu(s, static_cast<int>(list.size()), engine));
  };
  for (Scenario const& s : scenarios_of(nodes)) add(s);
  for (auto [m, n, k, ranks] : {std::array{330, 344, 72, 2}, {520, 160, 64, 4}, {1030, 528, 72, 6}, {7, 48, 48, 4}})
    for (Op op : {Op::kAllGatherGemm, Op::kGemmReduceScatter, Op::kGemmAllReduce})
      for (auto line : {"", "comm_rows=64 route=stage", "fused=no", "buffers=1 order=naive", "store=vector",
                        "copies=2 route=stage comm_rows=64", "copies=2 route=push k_slices=2"}) {
        Scenario s;
        s.op = op, s.m = m, s.n = n, s.k = k, s.ranks = ranks, s.nodes = nodes, s.plan = parse_plan(line), s.calls = 2;
        if (ranks % nodes == 0 && (op == Op::kAllGatherGemm || s.plan.k_slices == 1)) add(s);
      }
  return list;
}

std::vector<Scenario> scenarios_in_host_memory(EngineKind engine) {
  std::vector<Scenario> list = gpu_scenarios(engine);
  for (Scenario& s : list) {
    if (s.plan.copy_blocks > 0) s.plan.copy_blocks = kChosenCopies;
    if (s.plan.transport == Transport::kRemote) s.plan.transport = Transport::kPull;
    if (s.plan.path == Path::kRing) s.plan.path = Path::kDirect;
    if (s.plan.route == RouteKind::kRing || s.plan.route == RouteKind::kSum) s.plan.route = RouteKind::kPush;
  }
  return list;
}

}  // namespace flux::test
