#pragma once
// What is to be planned: one operator of one layer, sizes global, before tensor parallelism.
#include <cstdint>
#include <string>

#include "flux/problem.h"

namespace flux {

struct Problem {
  Op op = Op::kAllGatherGemm;
  int64_t m = 0, n = 0, k = 0;
  int ranks = 8;
  DType dtype = DType::kBF16;
  WeightLayout layout = WeightLayout::kOutIn;
  bool gated = false;  ///< AG+GEMM: n counts gate and up
  int nodes = 1;       ///< of ranks / nodes ranks each

  bool gathers() const { return op == Op::kAllGatherGemm; }
  /// The per-rank GEMM; of ranks that differ, the largest.
  int64_t local_n() const { return gathers() ? (n + ranks - 1) / ranks : n; }
  int64_t local_k() const { return gathers() ? k : (k + ranks - 1) / ranks; }
  /// Bytes of a row that travels: gathered, or of partial sums.
  int64_t row_bytes() const { return gathers() ? k * size_of(dtype) : n * size_of(result_of(dtype)); }
  int node_ranks() const { return ranks / nodes; }
  /// All rows once; an all-reduce counts as reduce-scatter and all-gather.
  double moved_bytes() const {
    double const once = static_cast<double>(m) * static_cast<double>(row_bytes());
    return op == Op::kGemmAllReduce ? 2 * once : once;
  }
  /// Bytes that a rank sends at least within its node, and to other nodes.
  double sent_bytes() const { return moved_bytes() * (node_ranks() - 1) / node_ranks(); }
  double rail_bytes() const { return moved_bytes() * (nodes - 1) / ranks; }
  bool operator==(Problem const&) const = default;
};

/// Throws Error{kInvalid} for sizes and ranks that no operator serves.
void require_plannable(Problem const& problem);

/// `ag_gemm m 8192, n 49152, k 12288, 8 ranks, bf16`
std::string to_string(Problem const& problem);

}  // namespace flux
