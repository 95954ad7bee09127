#pragma once
// Per-rank GEMMs of the workloads.
#include <string>
#include <vector>

#include "flux/problem.h"

namespace flux::bench {

struct GemmProblem {
  std::string workload, tier, op;
  int64_t m, n, k;  // global
  int tp;
  DType dtype = DType::kBF16;
  WeightLayout layout = WeightLayout::kOutIn;
  std::string epilogue = "none";  // none, bias_gelu, gated_silu

  int64_t rank_n() const { return op == "ag_gemm" ? n / tp : n; }
  int64_t rank_k() const { return op == "ag_gemm" ? k : k / tp; }
  bool gated() const { return epilogue == "gated_silu"; }
  int64_t columns() const { return gated() ? rank_n() / 2 : rank_n(); }
  std::string describe() const;
};

/// All-gather and reduce-scatter problems of the tiers (`core`, `extended`) at the given ranks, each per-rank GEMM
/// once. Behind one with weights [in,out] comes the same with [out,in], to show what the layout costs.
std::vector<GemmProblem> read_problems(std::string const& path, std::vector<std::string> const& tiers,
                                       std::vector<int> const& ranks, int64_t least_m);

}  // namespace flux::bench
