#pragma once
// The suite `gemm`: the per-rank GEMMs of the workloads on one GPU, ours against cuBLASLt and stock CUTLASS.
#include <optional>
#include <string>
#include <vector>

#include "bench/unit.h"
#include "flux/tensor.h"

namespace flux::bench {

struct GemmSuite {
  std::string workloads;
  std::string cublaslt;  // path of libcublasLt; empty: where the loader finds it
  std::vector<std::string> tiers = {"core", "extended"};
  std::vector<int> ranks = {8, 2};
  int64_t least_m = 512;
  int rounds = 15, checked_rows = 16;
  std::optional<DType> dtype;  // instead of the workloads'
};

/// Each problem by our kernel (plain, and fused with nothing to wait for: `flux_open`), by the best of cuBLASLt and by
/// stock CUTLASS, interleaved, outputs poisoned and checked against fp64; int8 and fp8, without scales, by ours alone.
/// Throws Error: kInternal where a result is
/// wrong, kUnsupported without cuBLASLt, kDevice.
std::vector<Unit> gemm_suite(GemmSuite const& options);

}  // namespace flux::bench
