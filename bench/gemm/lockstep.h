#pragma once
// Ranks that time the same methods in the same order, each on a GPU of its own. Before a sample they meet on their
// GPUs, so that how far the hosts are apart is in no figure; a sample's figure is the slowest rank's.
#include <cstdint>
#include <vector>

#include "bench/gemm/timing.h"
#include "op/gpu/channel.h"

struct CUevent_st;

namespace flux::bench {

class Lockstep {
 public:
  /// Collective.
  explicit Lockstep(World& world);

  /// Enqueues a meeting: what comes behind it on the stream begins, within microseconds, at the same time on all ranks.
  /// It is a call of an operator without data: it begins, and ends when all have begun.
  void meet(Stream stream);
  /// Waits until the event has come, but no longer than the world's limit: then the world ends for all.
  void await(CUevent_st* event);

  /// Collective. Rank 0's number; the least of all; and the samples of the slowest.
  uint32_t first(uint32_t mine);
  size_t least(size_t mine);
  void keep_slowest(std::vector<GpuMethod>& methods);

 private:
  World& world_;
  GpuChannel meeting_;
};

}  // namespace flux::bench
