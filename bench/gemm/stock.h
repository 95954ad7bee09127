#pragma once
// Stock CUTLASS 3.x kernels out of its CollectiveBuilder: a yardstick, benchmark only.
#include <vector>

#include "bench/gemm/problem.h"
#include "bench/gemm/timing.h"

namespace flux::bench {

/// y = x · weightᵀ for [out,in] bf16 weights: every built tile shape, raster order and swizzle, each as a method. Other
/// problems have none. `workspace` holds at least 1 MiB.
std::vector<GpuMethod> stock_cutlass(GemmProblem const& problem, void const* x, void const* weight, void* out,
                                     void* workspace);

}  // namespace flux::bench
