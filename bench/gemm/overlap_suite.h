#pragma once
// Operators on one GPU of a W-way world, the other ranks mirrored: fused against one after the other, against the best
// GEMM alone and the bytes alone, interleaved; as CUDA graphs and enqueued call by call.
#include <cstdint>
#include <functional>
#include <string>

#include "flux/plan.h"
#include "flux/world.h"
#include "report/result_file.h"

namespace flux::bench {

struct OverlapSuite {
  std::string workloads;
  std::string tier = "core";
  std::string only;      // workloads whose name contains this
  std::string cublaslt;  // as in GemmSuite
  int ranks = 8;
  int64_t least_m = 0, most_m = INT64_MAX;
  std::string timing;  // `graph` or `eager`; both, if empty
  Partner partner = Partner::kHost;
  Plan plan;
  std::string variant;   // what the plan forces, for the rows
  std::string timeline;  // where a call of each fused operator is drawn, names of its own behind the stem; or empty
  int rounds = 15, checked_rows = 8;
};

/// Throws Error: kUnsupported without cuBLASLt or a GPU, kDevice.
ResultFile overlap_suite(OverlapSuite const& options, std::function<void(int done, int all)> const& progress);

}  // namespace flux::bench
