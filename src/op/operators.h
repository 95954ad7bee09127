#pragma once
// What stands behind the three doors of flux/op.h: an operator of the host engine or of a GPU engine. Arguments are
// checked at the door, the same for both.
#include <memory>

#include "flux/op.h"
#include "world/team.h"

namespace flux {

class GatherOperator {
 public:
  GatherOperator(Team& team, AllGatherGemm::Shape const& shape) : team(team), shape(shape) {}
  virtual ~GatherOperator() = default;
  virtual void run(int64_t m, Tensor const& x, std::span<Linear const> linears, Tensor const& gathered,
                   Stream stream) = 0;
  virtual void record(Timeline* timeline) = 0;

  Team& team;
  AllGatherGemm::Shape const shape;
};

/// GEMM+RS and GEMM+AR.
class SumOperator {
 public:
  SumOperator(Team& team, GemmReduceScatter::Shape const& shape) : team(team), shape(shape) {}
  virtual ~SumOperator() = default;
  virtual void run(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
                   SumEpilogue const& epilogue, Stream stream) = 0;
  virtual void record(Timeline* timeline) = 0;

  Team& team;
  GemmReduceScatter::Shape const shape;
};

std::unique_ptr<GatherOperator> host_ag_gemm(Team& team, AllGatherGemm::Shape const& shape, Plan const& plan,
                                             std::shared_ptr<Buffers> shared);
std::unique_ptr<SumOperator> host_gemm_rs(Team& team, GemmReduceScatter::Shape const& shape, Plan const& plan,
                                          std::shared_ptr<Buffers> shared);
std::unique_ptr<SumOperator> host_gemm_ar(Team& team, GemmReduceScatter::Shape const& shape, Plan const& plan,
                                          std::shared_ptr<Buffers> shared);

std::unique_ptr<GatherOperator> gpu_ag_gemm(Team& team, AllGatherGemm::Shape const& shape, Plan const& plan,
                                            std::shared_ptr<Buffers> shared);
std::unique_ptr<SumOperator> gpu_gemm_rs(Team& team, GemmReduceScatter::Shape const& shape, Plan const& plan,
                                         std::shared_ptr<Buffers> shared);
std::unique_ptr<SumOperator> gpu_gemm_ar(Team& team, GemmReduceScatter::Shape const& shape, Plan const& plan,
                                         std::shared_ptr<Buffers> shared);

// What they take, as MemoryNeed says.
MemoryNeed host_ag_gemm_memory(Team& team, AllGatherGemm::Shape const& shape, Plan const& plan);
MemoryNeed host_gemm_rs_memory(Team& team, GemmReduceScatter::Shape const& shape, Plan const& plan);
MemoryNeed host_gemm_ar_memory(Team& team, GemmReduceScatter::Shape const& shape, Plan const& plan);
MemoryNeed gpu_ag_gemm_memory(Team& team, AllGatherGemm::Shape const& shape, Plan const& plan);
MemoryNeed gpu_gemm_rs_memory(Team& team, GemmReduceScatter::Shape const& shape, Plan const& plan);
MemoryNeed gpu_gemm_ar_memory(Team& team, GemmReduceScatter::Shape const& shape, Plan const& plan);

/// `plan` with the host engine's choices filled in: large tiles spare it the packing of operands.
inline Plan on_host(Plan plan) {
  if (plan.block_m == 0) plan.block_m = 256, plan.block_n = 512;
  if (plan.band == 0) plan.band = 4;
  return plan;
}

/// `plan` with the route that suits the GPU's links.
inline Plan with_route(Plan plan, Gpu const& gpu) {
  if (plan.route == RouteKind::kAuto || plan.route == RouteKind::kPackets)
    plan.route = gpu.across_pcie() ? RouteKind::kStage : RouteKind::kPush;
  return plan;
}

}  // namespace flux
