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
  std::string epilogue = "none";        // none, bias_gelu, gated_silu
  std::vector<std::string> plans = {};  // what to force one after the other, beside the plan's own choice

  int64_t rank_n() const { return op == "ag_gemm" ? n / tp : n; }
  int64_t rank_k() const { return op == "ag_gemm" ? k : k / tp; }
  bool gated() const { return epilogue == "gated_silu"; }
  int64_t columns() const { return gated() ? rank_n() / 2 : rank_n(); }
  std::string describe() const;
};

/// The tiers' problems at the given ranks, as they are.
std::vector<GemmProblem> read_operators(std::string const& path, std::string const& tier, int ranks);

/// Their GEMMs: all-gather and reduce-scatter problems of the tiers (`core`, `extended`), each per-rank GEMM once.
/// Behind one with weights [in,out] comes the same with [out,in], to show what the layout costs.
std::vector<GemmProblem> read_problems(std::string const& path, std::vector<std::string> const& tiers,
                                       std::vector<int> const& ranks, int64_t least_m);

}  // namespace flux::bench
