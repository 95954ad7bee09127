#pragma once
// One problem of an overlap suite: every method on it, timed and checked.
#include <random>
#include <vector>

#include "bench/gemm/cublaslt.h"
#include "bench/gemm/overlap_suite.h"

namespace flux::bench {

std::vector<ResultRow> overlap_rows(GemmProblem const& problem, OverlapSuite const& options, CublasLt& cublas,
                                    std::mt19937& random);

}  // namespace flux::bench
