#include "kernel/sm90_kernel.h"

namespace flux::sm90 {

Instances bf16_in_out() { return instances<WeightLayout::kInOut, cutlass::bfloat16_t>(); }

}  // namespace flux::sm90
