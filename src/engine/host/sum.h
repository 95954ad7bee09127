#pragma once
// The owner's part of GEMM+RS and GEMM+AR: partial sums added in rank order, and what follows once.
#include <span>

#include "flux/problem.h"

namespace flux::host {

/// Rows [row, row + rows) of y = Σ slots (in the order given) + bias + residual, then RMSNorm. Slots are [*, n]
/// matrices of one dtype whose row `row` is meant; `out`, residual and normed are indexed by the same rows.
void sum_rows(std::span<Tensor const> slots, int64_t row, int64_t rows, Tensor const& out, SumEpilogue const& epilogue);

}  // namespace flux::host
