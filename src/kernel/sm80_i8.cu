#include "kernel/sm80_kernel.h"

template flux::Instances flux::instances<flux::sm80::Kernels, flux::WeightLayout::kOutIn, int8_t>();
