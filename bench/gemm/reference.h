#pragma once
// What a result is checked against: fp64 on the GPU, a sample of rows.
#include "bench/gemm/problem.h"

namespace flux::bench {

/// Numbers uniform in (-1, 1).
void fill_random(void* data, DType dtype, int64_t count, uint32_t seed);

/// ‖out − ref‖ / ‖ref‖ over `rows` rows spread over out [m, columns]; NaN if out holds one there. `rest`, of the shape
/// of out, is added to the product.
double error_of(GemmProblem const& problem, void const* x, void const* weight, void const* bias, void const* out,
                int rows, void const* rest = nullptr);

}  // namespace flux::bench
