#include "kernel/sm90_kernel.h"

namespace flux::sm90 {

Instances bf16() { return instances<WeightLayout::kOutIn, cutlass::bfloat16_t>(); }

}  // namespace flux::sm90
