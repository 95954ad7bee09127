#pragma once
// Few rows on their way: one kernel that sends rows or partial sums in packets, adds up what comes, and finishes the
// rows. Nothing begins or ends a call beside it. docs/protocol.md.
#include "kernel/summed_rows.h"
#include "tile/packet.h"

struct CUstream_st;

namespace flux {

/// With `layout.partials` out = sum of all ranks' rows, in rank order and fp32, + bias + residual, and normed =
/// RMSNorm(out) * norm_weight, of out as it is rounded, which all ranks have alike; otherwise out = the owners' rows.
struct PacketExchange : SummedRows {
  PacketLayout layout = {};
  Symmetric<Packet> packets = {};  // at each rank: two halves, of `half` packets each
  int64_t half = 0;
  Word* calls = nullptr;  // ours: the number of this call, the same on every rank; then a count, zero between calls
  Word digest = 0;
  Watch watch = {};
  void const* own = nullptr;  // partial sums of all rows, or our own rows, of out's dtype
  int64_t own_stride = 0;     // elements from row to row
  bool mirrored = false;      // what we send is what comes: it is read where we sent it
};

void prepare_packets();

/// On up to `blocks` blocks of the current device, which all run at once. Where a wait fails the rest of `out` becomes
/// NaN. Where rows are gathered the GEMM behind it in the stream may begin beside it. Throws
/// Error.
void exchange_packets(PacketExchange const& exchange, int blocks, CUstream_st* stream);

}  // namespace flux
