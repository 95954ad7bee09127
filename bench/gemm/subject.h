#pragma once
// One workload on one rank, real or of a mirror: operands in GPU memory, the fused operator, and its check against
// fp64.
#include <memory>
#include <string>
#include <vector>

#include "bench/gemm/cuda.h"
#include "bench/gemm/problem.h"
#include "flux/op.h"
#include "trace/timeline.h"

namespace flux::bench {

class Lockstep;

class Subject {
 public:
  /// The operator with one plan. Collective.
  struct Fused {
    std::string variant;  ///< what was forced, for the rows
    Plan plan;
    std::unique_ptr<AllGatherGemm> gather;
    std::unique_ptr<GemmReduceScatter> scatter;
    std::unique_ptr<GemmAllReduce> all_reduce;
  };

  /// `weights`: copies of the weight, which calls read in turn.
  Subject(World& world, GemmProblem const& problem, int weights = 1);

  /// Throws Error where there is no such plan in this world. Collective.
  Fused make(Plan plan, std::string variant) const;

  /// The copy of the weight that calls read from here on.
  void turn(int weight) { turn_ = weight; }
  int weights() const { return static_cast<int>(weights_.size()); }
  void* weight() const { return weights_[turn_]->data(); }

  Tensor own_x() const;  ///< AG: this rank's rows
  Tensor all_x() const { return matrix(x_all.data(), p.dtype, p.m, p.rank_k()); }
  Tensor own_out() const;  ///< what the operator writes: AG and AR all rows, RS this rank's
  Tensor product() const { return matrix(product_.data(), p.dtype, p.m, p.rank_n()); }  ///< for GEMMs alone
  bool gathers() const { return p.op == "ag_gemm"; }

  void run(Fused const& fused, Stream stream) const;
  /// A call of the operator, recorded while the stream was held: no launch of the host is in it. `ranks`: they meet
  /// before it.
  Timeline record(Fused const& fused, Lockstep* ranks) const;

  /// ‖out − ref‖ / ‖ref‖. In a mirror what came in is not ours to know: gathered rows are asked for, the sums of the
  /// others' partials are what a call with zeros for x leaves.
  double error(Fused const& fused, int rows);
  /// Of real ranks, whose operands all are known: of a result of own_out()'s shape (AG: of product()'s) without
  /// epilogue.
  double error_of_plain(void const* result, int rows);
  /// In a mirror: of a result of own_out()'s shape (AG: of product()'s), given all rows of x, or the others' partials.
  double error_of_gathered(void const* x, void const* result, int rows) const;
  double error_of_sum(void const* result, void const* rest, int rows) const;

  GemmProblem const p;
  Part const own;
  Buffer x_all, bias, out;

 private:
  Linear linear() const;
  double error_in_mirror(Fused const& fused, int rows);
  double error_of_packets(Fused const& fused, bool of_own_rows, int rows);
  double error_among_ranks(GemmProblem const& with, void const* result, int rows);
  double const* others(int rows);
  Tensor weight_tensor() const;
  void sum(Fused const& fused, void const* x, Tensor const& to, Stream stream) const;

  World& world_;
  bool const mirrored_;
  Buffer product_;
  std::unique_ptr<Buffer> others_;  // the other ranks' part of the reference's sums
  std::vector<std::unique_ptr<Buffer>> weights_;
  int turn_ = 0;
};

}  // namespace flux::bench
