#pragma once
// Operators whose ranks do not reach each other's memory: rows and partial sums go through NCCL, one after the other
// with the GEMM. Sums are those of the fused operators, bit for bit: in rank order, by the same kernel.
#include "op/operators.h"

namespace flux {

std::unique_ptr<GatherOperator> nccl_ag_gemm(Team& team, AllGatherGemm::Shape const& shape, Plan const& plan);
/// GEMM+RS, or with `all` GEMM+AR.
std::unique_ptr<SumOperator> nccl_sums(Team& team, GemmReduceScatter::Shape const& shape, Plan const& plan, bool all);

MemoryNeed nccl_ag_gemm_memory(AllGatherGemm::Shape const& shape);
MemoryNeed nccl_sums_memory(GemmReduceScatter::Shape const& shape, int ranks, bool all);

}  // namespace flux
