#pragma once
// One operator on one problem, ready to be timed and checked on one rank.
#include <functional>
#include <memory>
#include <string>

#include "bench/overlap.h"
#include "bench/placed.h"
#include "bench/plain_gemm.h"
#include "bench/reference.h"
#include "flux/op.h"
#include "io/owned_tensor.h"
#include "trace/timeline.h"

namespace flux::bench {

/// Sizes are global, as in a result file.
struct Problem {
  Op op = Op::kAllGatherGemm;
  int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::kF32;
  WeightLayout layout = WeightLayout::kOutIn;
  Activation activation = Activation::kNone;
  bool gated = false, bias = false;
};

/// Throws `Error{kInvalid}` for negative sizes, products beyond 2⁶³ bytes, and epilogues the operator does not have.
void check_problem(Problem const& problem);

/// A timeline's title and first fact.
Timeline timeline_of(Problem const& problem, int ranks);

/// Inputs, operators and outputs of one rank. Collective.
class Case {
 public:
  Case(World& world, Problem const& problem, Plan const& plan, uint64_t seed);

  void run(bool fused);
  /// Waits until all runs so far are over.
  void settle() { placed_.settle(); }
  /// On the host.
  Subject subject();
  void record(Timeline* timeline);

  /// ‖out − ref‖ / ‖ref‖ over all ranks, on up to `rows` rows; the output has been poisoned and computed anew.
  /// Collective.
  double error(int64_t rows);
  int64_t sent_bytes() const;
  int64_t shared_bytes() const;
  /// Of the fused operator.
  MemoryNeed memory() const;
  /// What the fused operator goes by: the plan given, or a tuned one.
  Plan const& plan() const;
  Problem const& problem() const { return problem_; }
  Tensor const& out() const { return out_.view(); }

 private:
  Linear linear(Tensor const& out) const;
  DType travels() const;
  AllGatherGemm::Shape gather_shape() const;
  GemmReduceScatter::Shape sum_shape() const;

  World& world_;
  Problem problem_;
  uint64_t seed_;
  OwnedTensor x_, weight_, bias_, out_, row_scales_, column_scales_;  // scales: of int8 and fp8
  Placed placed_;
  struct {
    Tensor x, weight, bias, out;
    Scales scales;
  } there_;                                   // the same, where the operators take them
  OwnedTensor all_rows_, gemm_out_;           // for the GEMM alone: the rows as if gathered
  std::unique_ptr<AllGatherGemm> gather_[2];  // unfused, fused
  std::unique_ptr<GemmReduceScatter> scatter_[2];
  std::unique_ptr<GemmAllReduce> reduce_[2];
  PlainGemm tiled_, whole_;
  std::unique_ptr<GatherAlone> comm_;
};

}  // namespace flux::bench
