#include "kernel/sm90_kernel.h"

namespace flux::sm90 {

Instances fp16() { return instances<WeightLayout::kOutIn, cutlass::half_t>(); }

}  // namespace flux::sm90
