#pragma once
// GEMM+RS on the host engine, and what GEMM+AR shares with it: all but the end.
#include "op/operators.h"
#include "op/partial_sums.h"

namespace flux {

class HostReduceScatter : public SumOperator {
 public:
  /// `op`: what the ranks must agree on beside shape and plan. `more_words`, `more_bytes`: of a buffer, behind those of
  /// the partials.
  HostReduceScatter(Team& team, GemmReduceScatter::Shape const& shape, Plan const& plan, std::string_view op,
                    PartialSums::Way way, std::shared_ptr<Buffers> shared, int64_t more_words = 0,
                    int64_t more_bytes = 0);

  void run(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
           SumEpilogue const& epilogue, Stream) override;
  void record(Timeline* to) override { timeline_ = to; }

 protected:
  /// What comes after the GEMM: the rows that are summed here end in `out`.
  virtual void add_up(Call const& call, int64_t m, Tensor const& out, SumEpilogue const& epilogue,
                      Recording& recording);

  Plan const plan;
  PartialSums::Way const way;
  HostChannel channel;
  PartialSums partials;

 private:
  Timeline* timeline_ = nullptr;
};

}  // namespace flux
