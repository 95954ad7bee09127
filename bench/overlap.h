#pragma once
// How much of the communication is hidden: a fused operator against the same work one after the other, against its GEMM
// alone and against its bytes alone, all timed interleaved.
#include "bench/measure.h"

namespace flux::bench {

/// Something with communication in it, on one rank. Every function is collective.
struct Subject {
  std::function<void(bool fused)> run;
  std::vector<Method> gemms;   ///< unsplit GEMMs of this rank's shape; the fastest is what counts
  std::function<void()> comm;  ///< the same bytes alone
  int64_t sent_bytes = 0;      ///< the most that a rank sends; the same on every rank
};

/// The measures, named as in the FLUX paper; medians of the slowest rank, microseconds.
struct Overlap {
  Times fused, none, gemm, comm;
  std::string gemm_by;  ///< which of the GEMMs was the fastest
  double ect_us() const { return fused.median() - gemm.median(); }
  /// 1: all hidden, 0: no gain over one after the other. Meaningless unless `hides()`.
  double efficiency() const { return 1 - ect_us() / (none.median() - gemm.median()); }
  bool hides() const { return none.median() > gemm.median(); }
  double floor_us() const { return gemm.median() > comm.median() ? gemm.median() : comm.median(); }
};

/// The number of runs that `measure_overlap` makes, for a progress bar.
int overlap_runs(Subject const& subject, int rounds);
Overlap measure_overlap(
    World& world, Subject const& subject, int rounds, std::function<void()> const& tick = [] {});

/// A link that makes communication take `ratio` of the GEMM's time, measured now. Collective; the same on every rank.
Link link_for_ratio(World& world, Subject const& subject, double ratio, double latency_us);

}  // namespace flux::bench
