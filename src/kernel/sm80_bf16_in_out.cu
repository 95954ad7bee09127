#include "kernel/sm80_kernel.h"

template flux::Instances flux::instances<flux::sm80::Kernels, flux::WeightLayout::kInOut, cutlass::bfloat16_t>();
