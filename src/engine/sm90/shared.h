#pragma once
// The shared memory of a block, and the barriers at which its roles meet:
//
//   full[stage]          loader -> maths   both operand tiles of this k step have landed (1 arrival, and the bytes)
//   empty[stage]         maths -> loader   every group that reads this stage, in every block that our multicast writes
//                                          to, is done with it (1 a group and block)
//   ready[ring][slot]    maths -> storer   a 64-row chunk lies in the slot (4 warps)
//   drained[ring][slot]  storer -> maths   the store has read that chunk (1)
//   issued[group]        maths -> maths    ping-pong: the other group has issued all of its tile (4 warps)
//   staged[group]        maths -> maths    ping-pong: the other group has handed its tile to the storer (4 warps)
//
// and counts, where one role may run ahead of the other:
//
//   admitted             gatekeeper -> loader  tiles, or slices of k of them, whose rows may be read
//   performed            storer -> announcer   tiles whose stores are performed
#include <cutlass/arch/barrier.h>

#include <cute/arch/cluster_sm90.hpp>

#include "engine/ptx/progress.h"
#include "engine/sm90/config.h"
#include "tile/place.h"

namespace flux::sm90 {

using Barrier = cutlass::arch::ClusterBarrier;
using ByteBarrier = cutlass::arch::ClusterTransactionBarrier;

/// The constants of one kernel: a row of the table, a weight layout and an element type.
template <Config kConfig, WeightLayout kLayoutOf, class Element>
struct Shape {
  using T = Element;
  static constexpr Config config = kConfig;
  static constexpr WeightLayout kLayout = kLayoutOf;
  static constexpr bool kPingPong = kConfig.ping_pong;
  static constexpr int kM = kConfig.block_m, kN = kConfig.block_n, kPanelN = kConfig.panel_n(kLayout);
  static constexpr int kStages = kConfig.stages(kLayout), kSlots = kConfig.slots, kRings = kConfig.rings();
  static constexpr int kClusterM = kConfig.cluster_m, kClusterN = kConfig.cluster_n, kCluster = kConfig.cluster();
  static constexpr int kGroups = kConfig.groups, kReaders = kPingPong ? 1 : kGroups;  // groups that read a stage
  static constexpr int kGroupM = kM / kReaders, kBlocks = kGroupM / 64;               // 64-row WGMMAs of one group
  static constexpr int kChunkN = kConfig.chunk_n, kColumns = kN / kChunkN;            // chunks side by side
  static_assert(kStages >= 3 && kSlots >= 2 && kGroupM % 64 == 0 && kN % kChunkN == 0 && kCluster <= 2);
};

/// A band of the tile being stored, as the store instructions need it.
struct Band {
  int rank, slot;
  int row;         // in its slot, of the tile's first row: may lie before the slot's beginning
  int first, end;  // rows of the tile
  bool add;
};

template <class S>
struct Shared {
  alignas(1024) typename S::T a[S::kStages][S::kM * kBlockK];
  alignas(1024) typename S::T b[S::kStages][S::kPanelN * kBlockK];
  alignas(1024) typename S::T c[S::kRings][S::kSlots][64 * S::kChunkN];
  ByteBarrier full[S::kStages];
  Barrier empty[S::kStages];
  Barrier ready[S::kRings][S::kSlots], drained[S::kRings][S::kSlots];
  Barrier issued[2], staged[2];
  Band bands[kMaxRanks];
  ptx::Progress admitted, performed;
  int poisoned;  // a wait failed: what is stored from now on is NaN

  /// By all threads, before the block (or cluster) meets: each sets up a few barriers.
  __device__ void init() {
    int const i = threadIdx.x;
    if (i < S::kStages) full[i].init(1), empty[i].init(S::kReaders * S::kCluster);
    if (i >= 32 && i < 32 + S::kRings * S::kSlots) ready[0][i - 32].init(4), drained[0][i - 32].init(1);
    if (i >= 64 && i < 66) issued[i - 64].init(4), staged[i - 64].init(4);
    if (i == 0) poisoned = 0, admitted.count = performed.count = 0;
    cutlass::arch::fence_barrier_init();  // visible to the cluster and to bulk copies after the meeting
  }
};

/// Where a role stands in the ring of operand stages.
template <int kStages>
struct Ring {
  int stage = 0;
  uint32_t phase = 0;
  __device__ void next() {
    if (++stage == kStages) stage = 0, phase ^= 1;
  }
  __device__ void skip(int steps) {
    int const at = stage + steps;
    phase ^= at / kStages & 1;
    stage = at % kStages;
  }
};

/// Which block of its cluster this is.
__device__ inline int rank_in_cluster() { return static_cast<int>(cute::block_rank_in_cluster()); }

__device__ inline int steps(int64_t k) { return static_cast<int>((k + kBlockK - 1) / kBlockK); }

}  // namespace flux::sm90
