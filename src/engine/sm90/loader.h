#pragma once
// The loader: one thread that asks the copy engine for operand tiles, stage after stage.
#include <cute/arch/copy_sm90_desc.hpp>
#include <cute/arch/copy_sm90_tma.hpp>

#include "engine/ptx/bulk.h"
#include "engine/sm90/operands.h"
#include "engine/sm90/shared.h"

namespace flux::sm90 {

template <class S>
class Loader {
 public:
  __device__ Loader(Operands const& operands, Shared<S>& shared)
      : operands_(operands),
        shared_(shared),
        stage_bytes_(kWeightBytes + operands.a_rows * S::kClusterN * kBlockK * 2) {}

  /// Before the block meets.
  __device__ void prepare() const {
    cute::prefetch_tma_descriptor(reinterpret_cast<cute::TmaDescriptor const*>(&operands_.b));
  }

  /// Asks for the weights of the stages that are free now.
  __device__ void ahead(Tile tile, Rows k) {
    Ring<S::kStages> at = at_;
    Steps const steps = steps_of<S>(k);
    int const most = min(steps.count, S::kStages);
#pragma unroll 1
    for (; ahead_ < most && shared_.empty[at.stage].test_wait(at.phase ^ 1); ++ahead_, at.next())
      request_weights(tile, column_of(ahead_, steps, tile), at.stage);
  }

  /// The tile's rows, at `from`, and the weights not yet asked for.
  __device__ void load(Place from, Tile tile, Rows k) {
    CUtensorMap const* const map = &operands_.a[from.rank];
    int const row = static_cast<int>(from.row) + (S::kClusterM > 1 ? rank_in_cluster() * S::kM : 0);
    Steps const steps = steps_of<S>(k);
#pragma unroll 1
    for (int i = 0; i < steps.count; ++i, at_.next()) {
      int const column = column_of(i, steps, tile);
      if (i >= ahead_) {
        shared_.empty[at_.stage].wait(at_.phase ^ 1);
        request_weights(tile, column, at_.stage);
      }
      // Blocks side by side read the same rows: each asks for a part and sends it to all.
      constexpr int kPart = part(S::kM, S::kClusterN);
      fetch<S::kClusterN>(map, shared_.a[at_.stage] + share(S::kM, kPart) * kBlockK, column, row + share(S::kM, kPart),
                          at_.stage);
    }
    ahead_ = 0;
  }

  /// Rows of an operand tile that one of `sharers` blocks loads: whole 8-row swizzle atoms. Where they do not fit
  /// evenly (168 over 2) the parts overlap: the same bytes, written twice.
  static constexpr int part(int rows, int sharers) { return (rows / sharers + 7) / 8 * 8; }

  /// Weight rows, [out,in], that one copy brings: a block's part; in gated tiles, which are half gate, half up, a half.
  static constexpr int weight_rows(bool gated) { return part(S::kN, gated ? 2 : S::kClusterM); }

 private:
  static constexpr bool kInOut = S::kLayout == WeightLayout::kInOut;
  static constexpr int kNextK = kBlockK * S::kClusterK;  // from one of this block's steps to the next
  static constexpr int kPartK = kBlockK / S::kClusterM;  // [in,out]: k rows that a block loads
  static constexpr int kWeightBytes = (kInOut ? S::kPanelN : part(S::kN, S::kClusterM) * S::kClusterM) * kBlockK * 2;

  /// Where few rows are read by all blocks, each begins elsewhere in k: read by all at once, a row's 128 bytes come
  /// from one slice of L2.
  static __device__ int column_of(int step, Steps const& steps, Tile tile) {
    if constexpr (S::kM * S::kClusterM == 64 && S::kGroups == 1) {
      step += tile.n * 5 % steps.count;
      if (step >= steps.count) step -= steps.count;
    }
    return steps.column + step * kNextK;
  }

  /// Where this block's part of a shared tile begins.
  __device__ int share(int rows, int part) const { return part == rows ? 0 : rank_in_cluster() * (rows - part); }

  template <int kSharers>
  __device__ void fetch(CUtensorMap const* map, typename S::T* to, int x, int y, int stage) {
    uint64_t* const bar = reinterpret_cast<uint64_t*>(&shared_.full[stage]);
    constexpr auto kHint = static_cast<uint64_t>(cute::TMA::CacheHintSm90::EVICT_NORMAL);
    if constexpr (kSharers == 1)
      cute::SM90_TMA_LOAD_2D::copy(map, bar, kHint, to, x, y);
    else
      cute::SM90_TMA_LOAD_MULTICAST_2D::copy(map, bar, (1 << kSharers) - 1, kHint, to, x, y);
  }

  // Opens the stage: from here on its barrier expects both operands.
  __device__ void request_weights(Tile tile, int k, int stage) {
    shared_.full[stage].arrive_and_expect_tx(stage_bytes_);
    int const n = tile.n * S::kClusterN + (S::kClusterN > 1 ? rank_in_cluster() : 0);
    bool const gated = operands_.epilogue.gated;
    typename S::T* const to = shared_.b[stage];
    if constexpr (kInOut) {
      int const at = S::kClusterM > 1 ? rank_in_cluster() * kPartK : 0, first = n * (gated ? S::kN / 2 : S::kN);
#pragma unroll 1
      for (int panel = 0; panel < S::kPanelN / 64; ++panel) {
        bool const up = gated && panel >= S::kPanelN / 128;
        int const column = first + panel * 64 + (up ? operands_.up - S::kN / 2 : 0);
        fetch<S::kClusterM>(&operands_.b, to + panel * 64 * kBlockK + at * 64, column, k + at, stage);
      }
    } else if (!gated) {
      int const at = share(S::kN, part(S::kN, S::kClusterM));
      fetch<S::kClusterM>(&operands_.b, to + at * kBlockK, k, n * S::kN + at, stage);
    } else {
      constexpr int kHalf = S::kN / 2;
      for (int half = S::kClusterM > 1 ? rank_in_cluster() : 0; half < 2; half += S::kClusterM)
        fetch<S::kClusterM>(&operands_.b, to + half * kHalf * kBlockK, k, n * kHalf + half * operands_.up, stage);
    }
  }

  Operands const& operands_;
  Shared<S>& shared_;
  Ring<S::kStages> at_;
  int const stage_bytes_;
  int ahead_ = 0;  // steps of the tile under way whose weights were asked for
};

}  // namespace flux::sm90
