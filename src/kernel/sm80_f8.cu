#include "kernel/sm80_kernel.h"

template flux::Instances flux::instances<flux::sm80::Kernels, flux::WeightLayout::kOutIn, cutlass::float_e4m3_t>();
