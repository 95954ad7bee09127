#include "kernel/sm80_kernel.h"

namespace flux::sm80 {

Instances fp16_in_out() { return instances<WeightLayout::kInOut, cutlass::half_t>(); }

}  // namespace flux::sm80
