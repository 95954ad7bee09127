#include "kernel/sm90_kernel.h"

namespace flux::sm90 {

Instances fp16_in_out() { return instances<WeightLayout::kInOut, cutlass::half_t>(); }

}  // namespace flux::sm90
