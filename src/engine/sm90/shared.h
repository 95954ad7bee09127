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
//   sent                 maths -> maths    shared k: the other blocks' parts of our columns have come (warps of them)
//   added                maths -> maths    shared k: the other blocks have added up what we sent (warps of them)
//
// and counts, where one role may run ahead of the other:
//
//   admitted             gatekeeper -> loader  tiles, or slices of k of them, whose rows may be read
//   performed            storer -> announcer   tiles whose stores are performed
#include <cutlass/arch/barrier.h>

#include <cute/arch/cluster_sm90.hpp>

#include "engine/ptx/progress.h"
#include "engine/sm90/config.h"
#include "tile/schedule.h"

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
  static constexpr int kClusterM = kConfig.cluster_m, kClusterN = kConfig.cluster_n, kClusterK = kConfig.cluster_k;
  static constexpr int kCluster = kConfig.cluster(), kSharers = kClusterM * kClusterN;  // blocks that fill a stage
  static constexpr int kGroups = kConfig.groups, kReaders = kPingPong ? 1 : kGroups;    // groups that read a stage
  static constexpr int kGroupM = kM / kReaders, kBlocks = kGroupM / 64;                 // 64-row WGMMAs of one group
  static constexpr int kChunkN = kConfig.chunk_n, kOutN = kConfig.out_n(),
                       kColumns = kOutN / kChunkN;  // chunks side by side
  static_assert(kStages >= 3 && kSlots >= 2 && kGroupM % 64 == 0 && kOutN % kChunkN == 0 && kSharers <= 2);
  static_assert(kClusterK == 1 || (kSharers == 1 && kBlocks == 1 && !kPingPong && kClusterK <= 8));
};

/// A band of the tile being stored, as the store instructions need it.
struct Band {
  int rank, slot;
  int row;         // in its slot, of the tile's first row: may lie before the slot's beginning
  int first, end;  // rows of the tile
  bool add;
};

/// Where blocks that share a tile's k meet.
template <class S, bool kMeet = (S::kClusterK > 1)>
struct Exchange {};
template <class S>
struct Exchange<S, true> {
  static constexpr int kOthers = (S::kClusterK - 1) * S::kGroups * 4;  // warps that multiply in the other blocks
  // Of each other block, each group: four columns after four, a thread's where the same thread finds them.
  float4 parts[S::kClusterK - 1][S::kGroups * S::kOutN / 8][128];
  Barrier sent, added;
};

template <class S>
struct Shared : Exchange<S> {
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
    if (i < S::kStages) full[i].init(1), empty[i].init(S::kReaders * S::kSharers);
    if (i >= 32 && i < 32 + S::kRings * S::kSlots) ready[0][i - 32].init(4), drained[0][i - 32].init(1);
    if (i >= 64 && i < 66) issued[i - 64].init(4), staged[i - 64].init(4);
    if constexpr (S::kClusterK > 1)
      if (i == 66) this->sent.init(this->kOthers), this->added.init(this->kOthers);
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

/// The steps of a range of k that are this block's: all, or every kClusterK-th, counted from where k begins.
struct Steps {
  int column, count;  // of the first
};
template <class S>
__device__ Steps steps_of(Rows k) {
  int const first = static_cast<int>(k.first / kBlockK), all = static_cast<int>((k.count + kBlockK - 1) / kBlockK);
  if constexpr (S::kClusterK == 1) return {static_cast<int>(k.first), all};
  int const skip = (rank_in_cluster() + S::kClusterK - first % S::kClusterK) % S::kClusterK;
  return {(first + skip) * kBlockK, (all - skip + S::kClusterK - 1) / S::kClusterK};
}

/// The first output column of those that this block finishes of a tile.
template <class S>
__device__ int first_column(Tile tile, bool gated) {
  int const n = tile.n * S::kClusterN + (S::kClusterN > 1 ? rank_in_cluster() : 0);
  return n * (gated ? S::kN / 2 : S::kN) + (S::kClusterK > 1 ? rank_in_cluster() * S::kOutN : 0);
}

}  // namespace flux::sm90
