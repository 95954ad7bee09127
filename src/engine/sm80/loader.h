#pragma once
// The loader: all threads ask for 16-byte units of both operands by cp.async, stage after stage. What lies beyond an
// end reads as zero. k and the distances of rows are in 16 bits.
#include <cute/arch/copy_sm80.hpp>

#include "engine/sm80/operands.h"
#include "engine/sm80/shape.h"
#include "tile/schedule.h"

namespace flux::sm80 {

template <class S>
class Loader {
 public:
  static constexpr int kElementsA = S::kM * S::kK, kElementsB = S::kN * S::kK;  // of a stage

  __device__ Loader(Operands const& operands) : operands_(operands) {}

  /// From here on stages are of this tile, its rows at `from`, of this range of k.
  __device__ void begin(Place from, Tile tile, Rows k) {
    Stored const* const rows = static_cast<Stored const*>(operands_.a.at(from.rank));
    a_ = rows + (from.row + row(kUnitsK)) * operands_.a_stride + unit(kUnitsK) * 8 + k.first;
    inside_ = 0;
#pragma unroll
    for (int i = 0; i < S::kM / kStepK; ++i)
      if (row(kUnitsK) + i * kStepK < tile.rows) inside_ |= 1u << i;
    bool const gated = operands_.epilogue.gated;
    int const first = tile.n * (gated ? S::kN / 2 : S::kN);
    Stored const* const weight = static_cast<Stored const*>(operands_.b);
    if constexpr (S::kInOut) {
      int const column = weight_column<S>(unit(kUnitsN) * 8, gated, 0);
      if (first + column < operands_.columns) inside_ |= kFirstOfB;
      b_ = weight + first + weight_column<S>(unit(kUnitsN) * 8, gated, operands_.up) +
           (row(kUnitsN) + k.first) * operands_.b_stride;
    } else {
#pragma unroll
      for (int i = 0; i < S::kN / kStepK; ++i)
        if (first + weight_column<S>(row(kUnitsK) + i * kStepK, gated, 0) < operands_.columns)
          inside_ |= kFirstOfB << i;
      b_ = weight + (first + weight_column<S>(row(kUnitsK), gated, operands_.up)) * operands_.b_stride +
           unit(kUnitsK) * 8 + k.first;
    }
    left_ = static_cast<int>(k.count);
  }

  /// Asks for the next step, into the stage at `a` and `b`. Nothing is asked for beyond the last.
  __device__ void next(Stored* a, Stored* b) {
    if (left_ > 0) {
      load_rows(a);
      if constexpr (S::kInOut)
        load_weights_in_out(b);
      else
        load_weights(b);
      a_ += S::kK, b_ += S::kInOut ? S::kK * operands_.b_stride : S::kK;
    }
    left_ -= S::kK;
    cute::cp_async_fence();
  }

  /// Whether there was a step as many before the next.
  __device__ bool had_step(int before) const { return left_ + before * S::kK > 0; }

 private:
  static constexpr int kUnitsK = S::kK / 8, kUnitsN = S::kN / 8;  // of a row of the tile
  static constexpr int kHalf = S::kWarpN / 2;
  static constexpr uint32_t kFirstOfB = 1 << 16;
  // A thread's units lie below each other, so many rows apart.
  static constexpr int kStepK = S::kThreads / kUnitsK, kStepN = S::kThreads / kUnitsN;
  static_assert(kStepK % 8 == 0 && (kStepN % 8 == 0 || kStepN == 4));  // what swizzled() keeps as it is, or exchanges
  static __device__ int row(int units) { return static_cast<int>(threadIdx.x) / units; }
  static __device__ int unit(int units) { return static_cast<int>(threadIdx.x) % units; }

  static __device__ void copy(Stored* to, Stored const* from, bool inside) {
    cute::SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<cute::uint128_t>::copy(*reinterpret_cast<cute::uint128_t const*>(from),
                                                                 *reinterpret_cast<cute::uint128_t*>(to), inside);
  }

  // Pointers step from unit to unit: offsets worked out ahead would take more registers than there are.
  __device__ void load_rows(Stored* a) const {
    bool const inside = unit(kUnitsK) * 8 < left_;
    Stored* const to = a + swizzled<kUnitsK>(row(kUnitsK), unit(kUnitsK));
    Stored const* from = a_;
#pragma unroll
    for (int i = 0; i < S::kM / kStepK; ++i, from += kStepK * static_cast<int>(operands_.a_stride))
      copy(to + i * kStepK * S::kK, from, inside && inside_ >> i & 1);
  }

  // Gated, a thread's columns alternate between gate and up, or, so far apart that they do not, are all of one.
  __device__ void load_weights(Stored* b) const {
    static_assert(kStepK <= kHalf ? kHalf % kStepK == 0 : kStepK % S::kWarpN == 0);
    bool const gated = operands_.epilogue.gated, inside = unit(kUnitsK) * 8 < left_;
    Stored* const to = b + swizzled<kUnitsK>(row(kUnitsK), unit(kUnitsK));
    Stored const* from = b_;
#pragma unroll
    for (int i = 0; i < S::kN / kStepK; ++i) {
      copy(to + i * kStepK * S::kK, from, inside && inside_ & kFirstOfB << i);
      int const next = (i + 1) * kStepK % S::kWarpN;
      int columns = gated && kStepK > kHalf ? kStepK / 2 : kStepK;
      if (gated && kStepK <= kHalf && next == kHalf) columns = kStepK - kHalf + operands_.up;
      if (gated && kStepK <= kHalf && next == 0) columns = kStepK - operands_.up;
      from += columns * operands_.b_stride;
    }
  }

  __device__ void load_weights_in_out(Stored* b) const {
    int const lane = swizzled<kUnitsN>(row(kUnitsN), unit(kUnitsN));
    Stored const* from = b_;
#pragma unroll
    for (int i = 0; i < S::kK / kStepN; ++i, from += kStepN * static_cast<int>(operands_.b_stride))
      copy(b + (lane ^ i * kStepN % 8 * 8) + i * kStepN * S::kN, from,
           inside_ & kFirstOfB && row(kUnitsN) + i * kStepN < left_);
  }

  Operands const& operands_;
  Stored const *a_ = nullptr, *b_ = nullptr;  // this thread's first unit of the next step
  uint32_t inside_ = 0;                       // bits: which of this thread's rows are the tile's, and which columns
  int left_ = 0;                              // of k
};

}  // namespace flux::sm80
