#pragma once
// Stock CUTLASS kernels, yardsticks for benchmarks alone: 3.x out of its CollectiveBuilder, and 2.x on mma.sync.
#include <vector>

#include "bench/gemm/problem.h"
#include "bench/gemm/timing.h"

namespace flux::bench {

/// y = x · weightᵀ for [out,in] bf16 weights: every built tile shape, raster order and swizzle, each as a method. Other
/// problems have none. `workspace` holds at least 1 MiB.
std::vector<GpuMethod> stock_cutlass(GemmProblem const& problem, void const* x, void const* weight, void* out,
                                     void* workspace);

/// The same by CUTLASS 2.x, for our engine on mma.sync: every built tile shape, number of stages and swizzle.
std::vector<GpuMethod> stock_mma_sync(GemmProblem const& problem, void const* x, void const* weight, void* out);

}  // namespace flux::bench
