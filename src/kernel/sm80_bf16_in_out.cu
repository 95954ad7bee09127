#include "kernel/sm80_kernel.h"

namespace flux::sm80 {

Instances bf16_in_out() { return instances<WeightLayout::kInOut, cutlass::bfloat16_t>(); }

}  // namespace flux::sm80
