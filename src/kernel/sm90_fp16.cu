#include "kernel/sm90_kernel.h"

template flux::Instances flux::instances<flux::sm90::Kernels, flux::WeightLayout::kOutIn, cutlass::half_t>();
