#pragma once
// The constants of one kernel, and how operands lie in its shared memory.
#include <cutlass/bfloat16.h>
#include <cutlass/float8.h>
#include <cutlass/half.h>

#include <type_traits>

#include "engine/sm80/config.h"
#include "flux/problem.h"

namespace flux::sm80 {

/// What operands are in memory: 16 bits, an element or two of one byte. All that carries them counts in these; mma.sync
/// takes 32 bytes of k of either.
using Stored = uint16_t;

/// A row of the table, a weight layout and an element type.
template <Config kConfig, WeightLayout kLayoutOf, class Element>
struct Shape {
  using T = Element;
  static constexpr int kTogether = sizeof(Stored) / sizeof(T);  // elements in 16 bits
  static constexpr bool kScaled = kTogether > 1;
  using Result = std::conditional_t<kScaled, cutlass::bfloat16_t, T>;
  static constexpr Config config = kConfig;
  static constexpr bool kInOut = kLayoutOf == WeightLayout::kInOut;
  static constexpr int kM = kConfig.block_m, kN = kConfig.block_n, kStages = kConfig.stages;
  static constexpr int kK = kConfig.block_k;  // in 16 bits
  static constexpr int kThreads = kConfig.threads();
  static constexpr int kWarpM = kConfig.warp_m(), kWarpN = kConfig.warp_n();
  static constexpr int kRows16 = kWarpM / 16, kColumns8 = kWarpN / 8;  // products of one warp
  static_assert(kWarpM % 16 == 0 && kWarpN % 16 == 0 && kK % 32 == 0 && kStages >= 3);
  static_assert(!kScaled || !kInOut);  // ldmatrix transposes 16 bits
};

/// 16-bit elements before the 16-byte unit `unit` of row `row`, rows of kUnits. Units are exchanged so that the 8 that
/// ldmatrix reads at a time, of 8 rows one below the other, lie in 8 different bank groups.
template <int kUnits>
__device__ inline int swizzled(int row, int unit) {
  if constexpr (kUnits == 4)  // two rows side by side fill a line of banks
    return (row / 2 * 8 + row % 2 * 4 + (unit ^ row / 2 % 4)) * 8;
  else
    return (row * kUnits + (unit ^ row % 8)) * 8;
}

/// Where column `column` of a tile lies in the weight, behind the tile's first gate column. Gated, a warp's columns are
/// half gate, half up, so that a thread holds both of each output.
template <class S>
__device__ inline int weight_column(int column, bool gated, int up) {
  if (!gated) return column;
  constexpr int kHalf = S::kWarpN / 2;
  return column / S::kWarpN * kHalf + column % kHalf + (column % S::kWarpN >= kHalf ? up : 0);
}

}  // namespace flux::sm80
