#pragma once
// The GEMM alone, as a rank would run it with everything at hand: what fused operators are measured against.
#include "engine/host/run.h"
#include "flux/op.h"
#include "op/operators.h"

namespace flux::bench {

/// y = act(x · wᵀ + bias) by the tiles of `plan`, no communication.
class PlainGemm {
 public:
  explicit PlainGemm(Plan const& plan) : plan_(on_host(plan)), workers_(plan.workers) {}
  /// The same as a single tile: one product of Eigen's.
  static PlainGemm whole(int64_t m, int64_t columns);
  void run(Tensor const& x, Linear const& linear);

 private:
  Plan plan_;
  host::Workers workers_;
};

/// Moves the bytes of an all-gather of [m, columns] over the ranks, and nothing else. A reduce-scatter moves as many.
class GatherAlone {
 public:
  GatherAlone(World& world, int64_t m, int64_t columns, DType dtype, Plan const& plan);
  void run();
  /// The most that a rank sends, in bytes.
  static int64_t sent_bytes(int64_t m, int64_t columns, DType dtype, int ranks);

 private:
  int64_t m_;
  AllGatherGemm op_;
  std::vector<std::byte> shard_;
  Tensor x_;
};

}  // namespace flux::bench
