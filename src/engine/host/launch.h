#pragma once
#include "flux/problem.h"
#include "tile/signal.h"

namespace flux::host {

/// What one launch multiplies: c = epilogue(a · weight). All strides in elements.
struct Launch {
  Symmetric<std::byte> a;  // where each rank's rows lie; the gate says which and where
  int64_t a_stride = 0;
  Tensor weight;  // [columns, k] or [k, columns]
  Tensor up;      // gated: the same, for the factor that stands beside act(a · weight)
  WeightLayout layout = WeightLayout::kOutIn;
  Symmetric<std::byte> c;  // where each rank takes finished rows; the route says which and where
  DType c_dtype = DType::kF32;
  int64_t c_stride = 0;
  std::byte const* inbox = nullptr;  // Write::kRelay: what the left neighbour sent, global rows, laid out as c
  int64_t columns = 0;               // of c
  int block_m = 128, block_n = 256;
  Tensor bias, up_bias;
  Activation activation = Activation::kNone;
  Scales scales;  // rows: by the schedule's rows
  Tensor up_scale;

  /// Weights, biases, activation and output of a layer; `rank` is where the output lies.
  void set(Linear const& linear, int rank);
  int64_t k() const { return layout == WeightLayout::kOutIn ? weight.columns : weight.rows; }
  int tiles_n() const { return static_cast<int>((columns + block_n - 1) / block_n); }
};

}  // namespace flux::host
