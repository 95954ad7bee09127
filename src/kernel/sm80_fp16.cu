#include "kernel/sm80_kernel.h"

namespace flux::sm80 {

Instances fp16() { return instances<WeightLayout::kOutIn, cutlass::half_t>(); }

}  // namespace flux::sm80
