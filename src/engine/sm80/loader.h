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
  static constexpr int kBytesA = S::kM * S::kK * 2, kBytes = kBytesA + S::kN * S::kK * 2;  // of a stage, B behind A

  __device__ Loader(Operands const& operands) : operands_(operands) {}

  /// From here on stages are of this tile, its rows at `from`, of this range of k.
  __device__ void begin(Place from, Tile tile, Rows k) {
    Stored const* const rows = static_cast<Stored const*>(operands_.a.at(from.rank));
    a_ = bytes(rows + (from.row + row(kUnitsK)) * operands_.a_stride + unit(kUnitsK) * 8 + k.first);
    inside_ = 0;
#pragma unroll
    for (int i = 0; i < S::kM / kRows; ++i)
      if (row(kUnitsK) + i * kRows < tile.rows) inside_ |= 1u << i;
    bool const gated = operands_.epilogue.gated;
    int const first = tile.n * (gated ? S::kN / 2 : S::kN);
    Stored const* const weight = static_cast<Stored const*>(operands_.b);
    if constexpr (S::kInOut) {
      int const column = weight_column<S>(unit(kUnitsN) * 8, gated, 0);
      if (first + column < operands_.columns) inside_ |= kFirstOfB;
      b_ = bytes(weight + first + weight_column<S>(unit(kUnitsN) * 8, gated, operands_.up) +
                 (row(kUnitsN) + k.first) * operands_.b_stride);
    } else {
#pragma unroll
      for (int i = 0; i < S::kN / kRows; ++i)
        if (first + weight_column<S>(row(kUnitsK) + i * kRows, gated, 0) < operands_.columns) inside_ |= kFirstOfB << i;
      b_ = bytes(weight + (first + weight_column<S>(row(kUnitsK), gated, operands_.up)) * operands_.b_stride +
                 unit(kUnitsK) * 8 + k.first);
    }
    left_ = static_cast<int>(k.count);
  }

  /// Asks for the next step, into `stage`. Nothing is asked for beyond the last.
  __device__ void next(unsigned char* stage) {
    if (left_ > 0) {
      load_rows(stage);
      if constexpr (S::kInOut)
        load_weights_in_out(stage + kBytesA);
      else
        load_weights(stage + kBytesA);
    }
    a_ += S::kK * 2, b_ += S::kInOut ? operands_.b_stage : S::kK * 2;
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
  static constexpr int kRows = S::config.rows_at_once(), kRowsN = S::kThreads / kUnitsN;
  static_assert(kRows % 8 == 0 && (kRowsN % 8 == 0 || kRowsN == 4));  // what swizzled() keeps as it is, or exchanges
  static __device__ int row(int units) { return static_cast<int>(threadIdx.x) / units; }
  static __device__ int unit(int units) { return static_cast<int>(threadIdx.x) % units; }

  static __device__ char const* bytes(Stored const* from) { return reinterpret_cast<char const*>(from); }
  static __device__ void copy(unsigned char* to, char const* from, bool inside) {
    cute::SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<cute::uint128_t>::copy(*reinterpret_cast<cute::uint128_t const*>(from),
                                                                 *reinterpret_cast<cute::uint128_t*>(to), inside);
  }

  // Pointers step from unit to unit by what the launch worked out: products beside those of the tensor cores hold them
  // up, and offsets worked out ahead would take more registers than there are.
  __device__ void load_rows(unsigned char* a) const {
    uint32_t const inside = unit(kUnitsK) * 8 < left_ ? inside_ : 0;
    unsigned char* const to = a + swizzled<kUnitsK>(row(kUnitsK), unit(kUnitsK)) * 2;
    char const* from = a_;
#pragma unroll
    for (int i = 0; i < S::kM / kRows; ++i, from += operands_.a_step)
      copy(to + i * kRows * S::kK * 2, from, inside >> i & 1);
  }

  // Gated, a thread's columns alternate between gate and up, or, so far apart that they do not, are all of one.
  __device__ void load_weights(unsigned char* b) const {
    static_assert(kRows <= kHalf ? kHalf % kRows == 0 : kRows % S::kWarpN == 0);
    uint32_t const inside = unit(kUnitsK) * 8 < left_ ? inside_ : 0;
    unsigned char* const to = b + swizzled<kUnitsK>(row(kUnitsK), unit(kUnitsK)) * 2;
    char const* from = b_;
#pragma unroll
    for (int i = 0; i < S::kN / kRows; ++i) {
      copy(to + i * kRows * S::kK * 2, from, inside & kFirstOfB << i);
      int const next = (i + 1) * kRows % S::kWarpN;
      from += kRows <= kHalf && next == kHalf ? operands_.b_step_up
              : kRows <= kHalf && next == 0   ? operands_.b_step_down
                                              : operands_.b_step;
    }
  }

  __device__ void load_weights_in_out(unsigned char* b) const {
    int const lane = swizzled<kUnitsN>(row(kUnitsN), unit(kUnitsN));
    char const* from = b_;
#pragma unroll
    for (int i = 0; i < S::kK / kRowsN; ++i, from += operands_.b_step)
      copy(b + ((lane ^ i * kRowsN % 8 * 8) + i * kRowsN * S::kN) * 2, from,
           inside_ & kFirstOfB && row(kUnitsN) + i * kRowsN < left_);
  }

  Operands const& operands_;
  char const *a_ = nullptr, *b_ = nullptr;  // this thread's first unit of the next step
  uint32_t inside_ = 0;                     // bits: which of this thread's rows are the tile's, and which columns
  int left_ = 0;                            // of k
};

}  // namespace flux::sm80
