#pragma once
// The maths: warpgroups that multiply what lies in the operand stages and hand finished chunks to the storer.
#include <cute/arch/copy_sm90.hpp>

#include "engine/epilogue.h"
#include "engine/ptx/cluster.h"
#include "engine/sm90/operands.h"
#include "engine/sm90/shared.h"
#include "engine/sm90/wgmma.h"
#include "tile/schedule.h"

namespace flux::sm90 {

template <class S>
class Maths {
 public:
  __device__ Maths(Operands const& operands, Shared<S>& shared) : operands_(operands), shared_(shared) {}

  /// By every thread of the maths warpgroups, once they have their registers.
  __device__ void begin() {
    group_ = __shfl_sync(~0u, threadIdx.x / 128, 0);
    Epilogue const& e = operands_.epilogue;
    finishes_ = e.bias || e.gated || e.curved;
    int const block = threadIdx.x % 128 / 32;
    if (lane() == 0 && block < S::kSharers)
      empty_ = ptx::cluster_address(&shared_.empty[0], S::kClusterK > 1 ? rank_in_cluster() : block);
  }

  __device__ void multiply(Tile tile, Rows k) {
    int const count = steps_of<S>(k).count;
    if (S::kPingPong && turn_ % S::kGroups != group_) {
      ++turn_;
      slot_.skip(S::kBlocks * columns());
      return at_.skip(count);
    }
    // A parity wait tells a phase only from its neighbour. Without its turn, a group that skipped a tile would take an
    // older phase of full[] for its own.
    uint32_t const go = (turn_ / 2 & 1) ^ (group_ == 0);
    if (S::kPingPong) shared_.issued[group_].wait(go);
    float d[S::kBlocks][S::kN / 2];
    accumulate(d, count);
    if constexpr (S::kClusterK > 1) {
      if (poisoned()) poison(d);  // for all that add it
      Results sum;
      add_up(d[0], sum[0]);
      hand_over(sum, tile, go);
    } else {
      hand_over(d, tile, go);
    }
    if (S::kPingPong && lane() == 0) shared_.staged[group_ ^ 1].arrive();
    ++turn_;
  }

 private:
  using Accumulators = float[S::kBlocks][S::kN / 2];
  using Results = float[S::kBlocks][S::kOutN / 2];  // the same where k is not shared
  static constexpr bool kInOut = S::kLayout == WeightLayout::kInOut;
  static constexpr gmma::Major kMajorB = kInOut ? gmma::Major::MN : gmma::Major::K;

  // Chunks side by side in a finished tile.
  __device__ int columns() const {
    return S::config.gateable(S::kLayout) && operands_.epilogue.gated ? S::kColumns / 2 : S::kColumns;
  }
  static __device__ int lane() { return threadIdx.x % 32; }

  __device__ void accumulate(Accumulators& d, int count) {
    constexpr uint32_t kStageA = S::kM * kBlockK / 8, kStageB = S::kPanelN * kBlockK / 8, kRow64 = 64 * kBlockK / 8;
    constexpr uint32_t kNextA = 2, kNextB = kInOut ? 16 * 64 / 8 : 2;  // 16 elements of k further
    Descriptor const a0 = Descriptor::of(shared_.a[0], 1) + (S::kPingPong ? 0 : group_ * S::kBlocks * kRow64);
    Descriptor const b0 = Descriptor::of(shared_.b[0], kInOut ? kRow64 : 1);
    if (__builtin_expect(count == 0, false)) return clear(d);
    int before = 0;
#pragma unroll 1
    for (int i = 0; i < count; ++i, at_.next()) {
      shared_.full[at_.stage].wait(at_.phase);
      uint64_t const a = (a0 + at_.stage * kStageA).bits(), b = (b0 + at_.stage * kStageB).bits();
      cute::warpgroup_arrive();
#pragma unroll
      for (int k = 0; k < kBlockK / 16; ++k)
#pragma unroll
        for (int j = 0; j < S::kBlocks; ++j)
          multiply_add<S::kN, typename S::T, kMajorB>(d[j], a + (j * kRow64 + k * kNextA), b + k * kNextB,
                                                      k > 0 || i > 0, std::make_index_sequence<S::kN / 2>{});
      cute::warpgroup_commit_batch();
      cute::warpgroup_wait<1>();  // the step before this one has read its stage
      if (i > 0) release(before);
      before = at_.stage;
    }
    if (S::kPingPong && lane() == 0) shared_.issued[group_ ^ 1].arrive();  // one step early: it hides the signal's way
    cute::warpgroup_wait<0>();
#pragma unroll
    for (int j = 0; j < S::kBlocks; ++j)
#pragma unroll
      for (int x = 0; x < S::kN / 2; ++x) cute::warpgroup_fence_operand(d[j][x]);  // no use of d moves above the wait
    release(before);
  }

  // k is 0: this rank's part of a k that is shorter than the ranks are many.
  __device__ void clear(Accumulators& d) {
    if (S::kPingPong && lane() == 0) shared_.issued[group_ ^ 1].arrive();
#pragma unroll
    for (int j = 0; j < S::kBlocks; ++j)
#pragma unroll
      for (int x = 0; x < S::kN / 2; ++x) d[j][x] = 0;
  }

  // A product is read by its warpgroup as a whole, so one thread speaks for the group: to each block that writes this
  // stage, one in a warp of its own.
  __device__ void release(int stage) {
    if (empty_) ptx::arrive(empty_ + stage * sizeof(Barrier));
  }

  // Each block sends the others their columns, then adds up its own, in the order of the blocks: the same bits whoever
  // was first. Thread by thread: what a thread holds of one part, the same thread of another block holds of its own.
  __device__ void add_up(float const (&d)[S::kN / 2], float (&sum)[S::kOutN / 2]) {
    constexpr int kOwn = S::kOutN / 2;
    int const rank = rank_in_cluster(), thread = threadIdx.x % 128, first = group_ * (kOwn / 4);
    ptx::await_cluster(&shared_.added, (turn_ & 1) ^ 1);  // what was sent for the tile before
#pragma unroll
    for (int p = 0; p < S::kClusterK; ++p) {
      if (p == rank) continue;
      uint32_t const to = ptx::cluster_address(&shared_.parts[rank < p ? rank : rank - 1][first][thread], p);
#pragma unroll
      for (int i = 0; i < kOwn; i += 4)
        ptx::store(to + i / 4 * sizeof(shared_.parts[0][0]),
                   {d[p * kOwn + i], d[p * kOwn + i + 1], d[p * kOwn + i + 2], d[p * kOwn + i + 3]});
    }
    tell_others(shared_.sent);
    ptx::await_cluster(&shared_.sent, turn_ & 1);
#pragma unroll
    for (int i = 0; i < kOwn; ++i) sum[i] = 0;
#pragma unroll
    for (int p = 0; p < S::kClusterK; ++p)
#pragma unroll
      for (int i = 0; i < kOwn; i += 4) {
        float4 part = {d[p * kOwn + i], d[p * kOwn + i + 1], d[p * kOwn + i + 2], d[p * kOwn + i + 3]};
        if (p != rank) part = shared_.parts[p < rank ? p : p - 1][first + i / 4][thread];
        sum[i] += part.x, sum[i + 1] += part.y, sum[i + 2] += part.z, sum[i + 3] += part.w;
      }
    tell_others(shared_.added);
  }

  // This warp is done with what it wrote to, or read from, shared memory of the cluster.
  __device__ void tell_others(Barrier const& barrier) {
    __syncwarp();
    if (lane() < S::kClusterK && lane() != rank_in_cluster())
      ptx::arrive_releasing(ptx::cluster_address(&barrier, lane()));
  }

  __device__ void hand_over(Results& d, Tile tile, uint32_t go) {
    if (__builtin_expect(finishes_, false)) finish_tile(d, tile);
    if (poisoned()) poison(d);
    if (S::kPingPong) shared_.staged[group_].wait(go);
    stage(d);
  }

  __device__ void finish_tile(Results& d, Tile tile) {
    bool const gated = operands_.epilogue.gated;
#pragma unroll
    for (int j = 0; j < S::kBlocks; ++j)
      finish<S::kOutN, S::config.gateable(S::kLayout), typename S::T>(
          operands_.epilogue, d[j], first_column<S>(tile, gated), operands_.columns, operands_.up);
  }

  __device__ bool poisoned() const { return __builtin_expect(*const_cast<int volatile*>(&shared_.poisoned), false); }
  template <int kHalf>
  static __device__ void poison(float (&d)[S::kBlocks][kHalf]) {
#pragma unroll
    for (int j = 0; j < S::kBlocks; ++j)
#pragma unroll
      for (int x = 0; x < kHalf; ++x) d[j][x] = __int_as_float(0x7fffffff);
  }

  // Chunk by chunk into the staging ring, rows of 64 first.
  __device__ void stage(Results const& d) {
    int const row = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 16, ring = S::kPingPong ? 0 : group_;
    int const columns = this->columns();
#pragma unroll
    for (int j = 0; j < S::kBlocks; ++j)
#pragma unroll
      for (int c = 0; c < S::kColumns; ++c) {
        if (c >= columns) continue;
        shared_.drained[ring][slot_.stage].wait(slot_.phase ^ 1);
        stage_chunk(d[j] + c * (S::kChunkN / 2), shared_.c[ring][slot_.stage], row);
        cutlass::arch::fence_view_async_shared();  // each thread: what it wrote, before the bulk store reads it
        __syncwarp();
        if (lane() == 0) shared_.ready[ring][slot_.stage].arrive();
        slot_.next();
      }
  }

  static __device__ void stage_chunk(float const* x, typename S::T* chunk, int row) {
    constexpr int kUnits = S::kChunkN / 8;  // 16 bytes each
    auto packed = [&](int i) { return pack(x[i], x[i + 1], typename S::T{}); };
#pragma unroll
    for (int u = 0; u < kUnits; u += 2, x += 8) {  // 16 x 16 elements of this warp: four 8 x 8 matrices
      int const unit = u + threadIdx.x / 16 % 2;
      auto& to = reinterpret_cast<cute::uint128_t*>(chunk)[row * kUnits + (S::kChunkN == 64 ? unit ^ row % 8 : unit)];
      if (u + 1 < kUnits)
        cute::SM90_U32x4_STSM_N::copy(packed(0), packed(2), packed(4), packed(6), to);
      else
        cute::SM90_U32x2_STSM_N::copy(packed(0), packed(2), to);
    }
  }

  Operands const& operands_;
  Shared<S>& shared_;
  int group_ = 0;
  bool finishes_ = false;  // the epilogue has something to do
  uint32_t empty_ = 0;     // of the block this thread speaks to, if it speaks
  int turn_ = 0;           // tiles so far, the other group's included
  Ring<S::kStages> at_;
  Ring<S::kSlots> slot_;
};

}  // namespace flux::sm90
