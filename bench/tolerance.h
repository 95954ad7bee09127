#pragma once
// How far a result may be from fp64 on random data: the one place that says it, for tests, commands and benchmarks.
#include <algorithm>
#include <cmath>

#include "flux/plan.h"
#include "flux/problem.h"

namespace flux::bench {

/// The most that ‖out − ref‖ / ‖ref‖ may be. A result of 16 bits is rounded once at its end; partial sums of 16 bits in
/// slots of their own once more, whatever the number of ranks. Sums that are rounded at each of `ranks` additions (Sum,
/// Ring) have the rounding errors of all of them: √((ranks + 1) / 2) of one.
inline double tolerance(DType dtype, Op op, Plan const& plan, int ranks) {
  dtype = result_of(dtype);
  if (dtype == DType::kF64) return 1e-13;
  if (dtype == DType::kF32) return 1e-5;
  double const twice = dtype == DType::kBF16 ? 3e-3 : 3e-3 / 8;  // fp16 has three bits more
  bool const in_place = plan.route == RouteKind::kSum || plan.route == RouteKind::kRing;
  if (op == Op::kAllGatherGemm || !plan.fused || !in_place) return twice;
  return twice * std::max(1.0, std::sqrt((ranks + 1) / 4.25));
}

/// Of the one-way result of a GEMM, or of rows that were only gathered.
inline double tolerance(DType dtype) { return tolerance(dtype, Op::kAllGatherGemm, {}, 1); }

}  // namespace flux::bench
