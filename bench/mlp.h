#pragma once
// A model's MLP sharded over the ranks: AG+GEMM, activation in its epilogue, GEMM+RS.
#include <memory>

#include "bench/overlap.h"
#include "bench/placed.h"
#include "bench/plain_gemm.h"
#include "bench/reference.h"
#include "flux/op.h"
#include "io/mlp_weights.h"
#include "io/owned_tensor.h"

namespace flux::bench {

/// This rank's part of y = down(act(up(x))) or down(act(gate(x)) · up(x)). Weights are views of the checkpoint where
/// their dtype is the wanted one; otherwise this rank's part is converted. On GPUs it is copied, gate and up as one.
class Mlp {
 public:
  /// Collective. `x`: all m rows, of which this rank feeds its own; any dtype. Both must outlive the object.
  Mlp(World& world, MlpWeights const& weights, DType dtype, Tensor const& x, Plan const& plan);

  void run(bool fused);
  /// Waits until all runs so far are over.
  void settle() { placed_.settle(); }
  /// On the host.
  Subject subject();
  void record(Timeline* timeline);
  int64_t shared_bytes() const;
  /// Of both fused operators, each with its own.
  int64_t memory_bytes() const;

  /// ‖y − ref‖ / ‖ref‖ over all ranks on up to `rows` rows, against the unsharded MLP in fp64. Collective.
  double error(int64_t rows);
  /// All of y, [m, hidden], on every rank. Collective.
  OwnedTensor gathered();

 private:
  void both(PlainGemm& first, PlainGemm& second);
  AllGatherGemm::Shape gather_shape() const;
  GemmReduceScatter::Shape sum_shape() const;
  void place();

  World& world_;
  MlpWeights const& weights_;
  DType dtype_;
  Tensor all_rows_;
  int64_t m_;
  OwnedTensor x_, hidden_, y_, gemm_x_, gemm_y_;
  OwnedTensor up_, gate_, down_, up_bias_, gate_bias_, down_bias_;
  Linear first_;
  Tensor second_;
  WeightLayout layout_;
  SumEpilogue epilogue_;
  Placed placed_;
  struct {
    Tensor x, hidden, second, y;
    Linear first;
    SumEpilogue epilogue;
  } there_;                                   // the same, where the operators take them
  std::unique_ptr<AllGatherGemm> gather_[2];  // unfused, fused
  std::unique_ptr<GemmReduceScatter> scatter_[2];
  PlainGemm tiled_, whole_first_, whole_second_;
  std::unique_ptr<GatherAlone> comm_;
};

}  // namespace flux::bench
