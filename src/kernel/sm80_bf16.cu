#include "kernel/sm80_kernel.h"

namespace flux::sm80 {

Instances bf16() { return instances<WeightLayout::kOutIn, cutlass::bfloat16_t>(); }

}  // namespace flux::sm80
