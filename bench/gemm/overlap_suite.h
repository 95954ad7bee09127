#pragma once
// Operators on a GPU of a W-way world, by real ranks or with the others mirrored: fused, chunked and one after the
// other, against the best GEMM alone and the bytes alone, interleaved; as CUDA graphs and enqueued call by call.
#include <cstdint>
#include <functional>
#include <string>

#include "bench/unit.h"
#include "flux/plan.h"
#include "flux/world.h"

namespace flux {
class Nccl;
}

namespace flux::bench {

struct OverlapSuite {
  std::string workloads;
  std::string tier = "core";
  std::string only;      // workloads whose name contains this
  std::string cublaslt;  // as in GemmSuite
  int ranks = 8;
  int64_t least_m = 0, most_m = INT64_MAX;
  std::string timing;      // `graph` or `eager`; both, if empty
  bool budget = false;     // also where the time above the floor goes, and what a timeline costs
  bool cold = false;       // beside warm: weights rotated over more than twice the L2
  World* world = nullptr;  // of real ranks, each of which runs the suite; none: a mirror
  Nccl* nccl = nullptr;    // beside their links, or none
  Partner partner = Partner::kHost;
  Plan plan;
  std::string variant;   // what the plan forces, for the rows
  std::string timeline;  // where a call of each fused operator is drawn, names of its own behind the stem; or empty
  int rounds = 15, checked_rows = 8;
  bool decodes() const { return tier == "decode"; }
  std::string link() const;                          // as result files call it
  std::function<void(std::string const&)> note;      // what was left out and why
  std::function<void(std::string const&)> complain;  // a baseline that is not good: the suite has failed
};

/// Throws Error: kUnsupported without cuBLASLt or a GPU, kDevice.
std::vector<Unit> overlap_suite(OverlapSuite const& options);

}  // namespace flux::bench
