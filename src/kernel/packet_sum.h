#pragma once
// The second half of GEMM+AR where rows are few: one kernel sends a rank's partial sums in packets, adds up those that
// come, and finishes the rows. Nothing begins or ends a call beside it.
#include "kernel/summed_rows.h"
#include "tile/packet.h"

struct CUstream_st;

namespace flux {

/// y = sum of all ranks' rows, in rank order and fp32, + bias + residual; normed = RMSNorm(y) * norm_weight, of y as it
/// is rounded, which all ranks have alike.
struct PacketSum : SummedRows {
  PacketLayout layout = {};
  Symmetric<Packet> packets = {};  // at each rank: two halves, of `half` packets each
  int64_t half = 0;
  Word* calls = nullptr;      // ours: the number of this call, the same on every rank; then a count, zero between calls
  Word digest = 0;
  Watch watch = {};
  void const* own = nullptr;  // our partial sums, [rows, n], contiguous, of out's dtype
  bool mirrored = false;      // what we send is what comes: it is read where we sent it
};

void prepare_packet_sum();

/// On up to `blocks` blocks of the current device, which all run at once. Begins while the kernel before it in the
/// stream still runs, and waits for its end. Where a wait fails the rest of `out` becomes NaN. Throws Error.
void sum_packets(PacketSum const& sum, int blocks, CUstream_st* stream);

}  // namespace flux
