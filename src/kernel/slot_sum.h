#pragma once
// The owner's part of GEMM+RS and GEMM+AR: adding up the slots that the ranks' partial sums came in.
#include "kernel/summed_rows.h"
#include "tile/route.h"

struct CUstream_st;

namespace flux {

/// y = sum of the slots, in rank order and fp32, + bias + residual; normed = RMSNorm(y) * norm_weight. Each band is
/// added up as soon as its words say that all its partials are here.
struct SlotSum : SummedRows {
  BandWords bands = {};
  int owner = 0;                           // whose bands; with one owner of all rows (all-reduce in one shot) 0
  int first_band = 0, end_band = 1 << 30;  // of those
  int sources = 1;                         // words of a band that are waited for
  int whose[kMaxRanks] = {};               // which rank's act each of them is
  Word const* words = nullptr;             // ours, [source][band]; none: all partials are here
  Word goal = 0;
  Watch watch = {};
  void const* slots = nullptr;  // [parts, slot_rows, n], contiguous, of out's dtype
  int parts = 1;
  void const* own = nullptr;  // where part `own_part` lies instead, [rows of the owner, n]
  int own_part = -1;
  int64_t slot_rows = 0;
};

/// Loads its kernels, as sm90::prepare does.
void prepare_slot_sum();

/// On up to `blocks` blocks of the current device. Where a wait fails the rest of `out` becomes NaN. Throws Error.
void sum_slots(SlotSum const& sum, int blocks, CUstream_st* stream);

}  // namespace flux
