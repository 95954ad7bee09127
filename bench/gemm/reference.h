#pragma once
// What a result is checked against: fp64 on the GPU, a sample of rows.
#include "bench/gemm/problem.h"

namespace flux::bench {

/// Numbers uniform in (-1, 1), of int8 in (-127, 127): `count` of a seed's, from number `first` on.
void fill_random(void* data, DType dtype, int64_t count, uint32_t seed, int64_t first = 0);

/// ‖out − ref‖ / ‖ref‖ over `rows` rows spread over out [m, columns]; NaN if out holds one there. `rest`, of the shape
/// of out, is added to the product, and `others`, of the rows alone.
double error_of(GemmProblem const& problem, void const* x, void const* weight, void const* bias, void const* out,
                int rows, void const* rest = nullptr, double const* others = nullptr);

/// Adds x · weightᵀ, in fp64, to `sums` [rows, columns], which error_of() takes for `others`: the same rows of [m,
/// columns].
void add_products(GemmProblem const& problem, void const* x, void const* weight, int rows, double* sums);

}  // namespace flux::bench
