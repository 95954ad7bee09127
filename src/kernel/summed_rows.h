#pragma once
// What becomes of rows of partial sums that a kernel adds up.
#include "flux/tensor.h"

namespace flux {

/// y = sum + bias + residual; normed = RMSNorm(y) * norm_weight.
struct SummedRows {
  Tensor out;                  // [rows summed, n], bf16 or fp16
  Tensor bias;                 // [1, n] or none
  Tensor residual;             // shape of out or none
  Tensor norm_weight, normed;  // [1, n] and the shape of out, or none
  float norm_epsilon = 0;
  bool alone = false;  // no kernel of another rank holds the GPU: blocks that start together or not at all find room
};

}  // namespace flux
