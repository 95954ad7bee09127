#pragma once

#include <cstdint>
#include <string_view>

#include "flux/tensor.h"

namespace flux {

/// The three operators. Sizes m, n, k are global, before tensor parallelism over W ranks.
enum class Op {
  kAllGatherGemm,      ///< rank holds x[m/W, k] and w[n/W, k], makes y[m, n/W]
  kGemmReduceScatter,  ///< rank holds x[m, k/W] and w[n, k/W], ends with y[m/W, n]
  kGemmAllReduce,      ///< rank holds x[m, k/W] and w[n, k/W], ends with y[m, n]
};
std::string_view name(Op op);  ///< `ag_gemm`, `gemm_rs`, `gemm_ar`
Op parse_op(std::string_view text);

/// How a weight lies in memory. `kOutIn` is torch.nn.Linear's; `kInOut` is GPT-2's Conv1D and the backward pass's.
enum class WeightLayout { kOutIn, kInOut };
std::string_view name(WeightLayout layout);  ///< `[out,in]`, `[in,out]`
WeightLayout parse_weight_layout(std::string_view text);

/// Applied by the epilogue of AG+GEMM. `kGelu` is the erf form, `kGeluTanh` the tanh form, `kQuickGelu`
/// x·sigmoid(1.702x). A gated layer multiplies act(gate) by up, both read out of one weight, gate first, and halves the
/// output's columns.
enum class Activation { kNone, kRelu, kGelu, kGeluTanh, kQuickGelu, kSilu };
std::string_view name(Activation activation);  ///< `none`, `relu`, `gelu`, `gelu_tanh`, `quick_gelu`, `silu`
/// Also takes the Hugging Face words (`gelu_new`, `gelu_pytorch_tanh`, `swish`). Throws `Error{kInvalid}`.
Activation parse_activation(std::string_view text);

/// The part of `total` that a rank owns: rank r of W has [begin, begin + size). Rows (unit 1) are divided as
/// ⌊r·total/W⌋; n and k likewise in units of 8 elements, or as said: k_unit(dtype) for k.
struct Part {
  int64_t begin, size;
};
Part part_of_rows(int64_t m, int rank, int ranks);
Part part_of_columns(int64_t total, int rank, int ranks, int64_t unit = 8);

/// What int8 and fp8 stand for: sums are multiplied by rows[i] · columns[j] before anything else is done with them. In
/// fp32; either may be missing, which is 1. `rows` has the scales of all rows of the call, on every rank, also where
/// the rows themselves are gathered: those that are worked out anew for each call are gathered before it.
struct Scales {
  Tensor rows;     ///< [1, m] or none
  Tensor columns;  ///< [1, n_r], of this rank's columns, or none
};

/// One weight of a column-parallel layer. A gated layer multiplies act(gate) by up: `weight` is then the gate and `up`
/// the other half; without `up` both lie in `weight`, gate first.
struct Linear {
  Tensor weight;  ///< [n_r, k] (kOutIn) or [k, n_r] (kInOut)
  Tensor out;     ///< [m, n_r]; gated with both in one weight: [m, n_r/2]; of result_of(dtype), as the bias
  Tensor bias;    ///< [1, n_r] or none
  WeightLayout layout = WeightLayout::kOutIn;
  Activation activation = Activation::kNone;
  bool gated = false;
  Tensor up, up_bias;  ///< gated, where gate and up are separate: shapes of `weight` and `bias`
  Scales scales;       ///< of int8 and fp8
  Tensor up_scale;     ///< gated, where gate and up are separate: as scales.columns
};

/// What is done to the summed rows of GEMM+RS and GEMM+AR, once: y = sum + bias + residual, normed = RMSNorm(y)·gamma.
/// All of result_of(dtype).
struct SumEpilogue {
  Tensor bias;         ///< [1, n] or none
  Tensor residual;     ///< shape of `out`, or none
  Tensor norm_weight;  ///< gamma [1, n] or none
  Tensor normed;       ///< shape of `out`; given exactly if `norm_weight` is
  double norm_epsilon = 1e-5;
  Scales scales;  ///< of int8 and fp8, of this rank's own partial sums, before they are added
};

}  // namespace flux
