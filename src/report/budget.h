#pragma once
// Where the time above the floor goes, read off the timeline of a call.
#include <optional>

#include "report/result_file.h"
#include "trace/timeline.h"

namespace flux {

/// What was measured beside the call, in microseconds: the best GEMM and the collective alone; our GEMM in the tiles of
/// the call, plain, and fused with nothing to wait for.
struct BudgetTimes {
  double gemm_us = 0, comm_us = 0, plain_us = 0, open_us = 0;
};

/// Microseconds of one recorded call of one rank. `total_us` is the recorded call's.
///
/// Where the GEMM is the longer part: total = gemm_us + gemm + fusion + head + traffic + sum + tail. Where the
/// communication is, GEMM and fusion are hidden behind it: total = comm_us + head + traffic + sum + tail.
struct Budget {
  double total_us = 0;
  double gemm_us = 0;     ///< our plain GEMM above the best
  double fusion_us = 0;   ///< the fused kernel with nothing to wait for, above the plain one
  double head_us = 0;     ///< until the first tile is multiplied; of longer communication, until the first copy moves
  double traffic_us = 0;  ///< from there to the last tile, or copy, above the same alone: what each costs the other
  double sum_us = 0;      ///< sums of partials behind that
  double tail_us = 0;     ///< what is left to the end of the call
};

/// Nothing for a timeline without tiles, or, where communication is the longer part, without copies: blocks of the GPU
/// that carry rows leave none.
std::optional<Budget> budget_of(Timeline const& timeline, BudgetTimes const& times);

/// The whole call. Throws Error{kInvalid} for a timeline without one.
double call_us(Timeline const& timeline);

/// Into the fields of a row.
void set_budget(ResultRow& row, Budget const& budget);

}  // namespace flux
