#pragma once
// The maths: ldmatrix and mma.sync over the stages, the fragments of the next 32 bytes of k on their way meanwhile.
#include <cuda_fp8.h>

#include <cute/arch/copy_sm75.hpp>
#include <cute/arch/copy_sm80.hpp>
#include <cute/arch/mma_sm80.hpp>
#include <cute/arch/mma_sm89.hpp>

#include "engine/sm80/loader.h"

namespace flux::sm80 {

__device__ inline void multiply_add(float (&d)[4], uint32_t const (&a)[4], uint32_t b0, uint32_t b1,
                                    cutlass::bfloat16_t) {
  cute::SM80_16x8x16_F32BF16BF16F32_TN::fma(d[0], d[1], d[2], d[3], a[0], a[1], a[2], a[3], b0, b1, d[0], d[1], d[2],
                                            d[3]);
}
__device__ inline void multiply_add(float (&d)[4], uint32_t const (&a)[4], uint32_t b0, uint32_t b1, cutlass::half_t) {
  cute::SM80_16x8x16_F32F16F16F32_TN::fma(d[0], d[1], d[2], d[3], a[0], a[1], a[2], a[3], b0, b1, d[0], d[1], d[2],
                                          d[3]);
}

/// int32, in the registers of floats until the sums are whole.
__device__ inline void multiply_add(float (&d)[4], uint32_t const (&a)[4], uint32_t b0, uint32_t b1, int8_t) {
  auto& sums = reinterpret_cast<uint32_t(&)[4]>(d);
  cute::SM80_16x8x32_S32S8S8S32_TN::fma(sums[0], sums[1], sums[2], sums[3], a[0], a[1], a[2], a[3], b0, b1, sums[0],
                                        sums[1], sums[2], sums[3]);
}

/// Whether fp8 is made fp16 before it is multiplied: 9.0 has no such mma.sync, and what ptxas puts in its place spills.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
inline constexpr bool kWidensFp8 = true;
#else
inline constexpr bool kWidensFp8 = false;
#endif

/// Two of the four elements of `four`, exact.
__device__ inline uint32_t widened(uint32_t four, int first) {
  __half2_raw const two = __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(four >> 8 * first), __NV_E4M3);
  return reinterpret_cast<uint32_t const&>(two);
}
/// Half of the 32 of k: those that lie in one register of each row. Both operands' k is in the same order, not in its
/// own.
__device__ inline void multiply_add_widened(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t b) {
  cute::SM80_16x8x16_F32F16F16F32_TN::fma(d[0], d[1], d[2], d[3], widened(a0, 0), widened(a1, 0), widened(a0, 2),
                                          widened(a1, 2), widened(b, 0), widened(b, 2), d[0], d[1], d[2], d[3]);
}
__device__ inline void multiply_add(float (&d)[4], uint32_t const (&a)[4], uint32_t b0, uint32_t b1,
                                    cutlass::float_e4m3_t) {
  if constexpr (kWidensFp8) {
    multiply_add_widened(d, a[0], a[1], b0);
    return multiply_add_widened(d, a[2], a[3], b1);
  }
  cute::SM89_16x8x32_F32E4M3E4M3F32_TN::fma(d[0], d[1], d[2], d[3], a[0], a[1], a[2], a[3], b0, b1, d[0], d[1], d[2],
                                            d[3]);
}

/// The part of the tile that is this thread's warp's.
template <class S>
__device__ int warp_row(int thread) {
  return thread / 32 % S::config.warps_m * S::kWarpM;
}
template <class S>
__device__ int warp_column(int thread) {
  return thread / 32 / S::config.warps_m * S::kWarpN;
}

template <class S>
class Maths {
 public:
  /// A warp's products, of 16 rows each.
  using Accumulators = float[S::kRows16][S::kColumns8][4];

  __device__ Maths(void* stages) : stages_(static_cast<unsigned char*>(stages)) {
    int const thread = static_cast<int>(threadIdx.x), lane = thread % 32;
    lane_a_ = swizzled<kUnitsK>(warp_row<S>(thread) + lane % 16, lane / 16) * 2;
    lane_b_ = 2 * (S::kInOut ? swizzled<kUnitsN>(lane % 16, warp_column<S>(thread) / 8 + lane / 16)
                             : swizzled<kUnitsK>(warp_column<S>(thread) + lane / 16 * 8 + lane % 8, lane / 8 % 2));
  }

  /// Adds the products of all of the loader's steps. Shared memory is free before and after.
  __device__ void accumulate(Accumulators& d, Loader<S>& loader) {
#pragma unroll
    for (int s = 0; s < S::kStages - 1; ++s) loader.next(stages_ + s * kStage);
    int read = 0, write = (S::kStages - 1) * kStage;  // bytes before the stages
    if constexpr (kAhead) {
      arrived();
      load(fragments_[0], read, 0);
    }
#pragma unroll 1
    while (loader.had_step(S::kStages - 1)) {
#pragma unroll
      for (int k = 0; k < kParts; ++k) {
        if (k == (kAhead ? kParts - 1 : 0)) arrived();  // the next step
        if (kAhead && k == kParts - 1) advance(read, write);
        if constexpr (kAhead) {
          load(fragments_[(k + 1) % 2], read, (k + 1) % kParts);
          multiply(d, fragments_[k % 2], 0, S::kColumns8);
        } else {
          multiply_in_turn(d, read, k);
        }
        if (k == 0) loader.next(stages_ + write);  // all warps have read the step that is there
      }
      if (!kAhead) advance(read, write);
    }
    cute::cp_async_wait<0>();
    __syncthreads();
  }

 private:
  static constexpr int kStage = Loader<S>::kBytes, kParts = S::kK / 16, kUnitsK = S::kK / 8, kUnitsN = S::kN / 8;
  static_assert(kParts % 2 == 0);
  // What is widened takes the registers of the fragments ahead.
  static constexpr bool kAhead = !(kWidensFp8 && std::is_same_v<typename S::T, cutlass::float_e4m3_t>);

  struct Fragments {
    uint32_t a[S::kRows16][4], b[S::kColumns8][2];
  };

  static __device__ void advance(int& read, int& write) {
    write = read;
    read = read + kStage == S::kStages * kStage ? 0 : read + kStage;
  }

  static __device__ void arrived() {
    cute::cp_async_wait<S::kStages - 2>();
    __syncthreads();
  }

  static __device__ cute::uint128_t const& at(unsigned char const* matrix) {
    return *reinterpret_cast<cute::uint128_t const*>(matrix);
  }
  // Where swizzled() exchanges units, it adds 32 bytes of k, or 8 columns, as an exclusive or.
  __device__ void load_rows(Fragments& f, int stage, int k) const {
    unsigned char const* const a = stages_ + stage + (lane_a_ ^ k * 32);
#pragma unroll
    for (int i = 0; i < S::kRows16; ++i)
      cute::SM75_U32x4_LDSM_N::copy(at(a + i * 32 * S::kK), f.a[i][0], f.a[i][1], f.a[i][2], f.a[i][3]);
  }
  /// Of columns [first, end), both even.
  __device__ void load_columns(Fragments& f, int stage, int k, int first, int end) const {
    unsigned char const* const b =
        stages_ + stage + Loader<S>::kBytesA + (S::kInOut ? k * 32 * S::kN : lane_b_ ^ k * 32);
#pragma unroll
    for (int i = first; i < end; i += 2) {
      if constexpr (S::kInOut)
        cute::SM75_U16x8_LDSM_T::copy(at(b + (lane_b_ ^ i * 16)), f.b[i][0], f.b[i][1], f.b[i + 1][0], f.b[i + 1][1]);
      else
        cute::SM75_U32x4_LDSM_N::copy(at(b + i * 16 * S::kK), f.b[i][0], f.b[i][1], f.b[i + 1][0], f.b[i + 1][1]);
    }
  }
  __device__ void load(Fragments& f, int stage, int k) const {
    load_rows(f, stage, k);
    load_columns(f, stage, k, 0, S::kColumns8);
  }
  __device__ void multiply_in_turn(Accumulators& d, int stage, int k) {
    load_rows(fragments_[0], stage, k);
#pragma unroll
    for (int j = 0; j < S::kColumns8; j += 2) {
      load_columns(fragments_[0], stage, k, j, j + 2);
      multiply(d, fragments_[0], j, j + 2);
    }
  }

  // Up one column, down the next: the operand last used is used again.
  static __device__ void multiply(Accumulators& d, Fragments const& f, int first, int end) {
#pragma unroll
    for (int j = first; j < end; ++j)
#pragma unroll
      for (int x = 0; x < S::kRows16; ++x) {
        int const i = j % 2 ? S::kRows16 - 1 - x : x;
        multiply_add(d[i][j], f.a[i], f.b[j][0], f.b[j][1], typename S::T{});
      }
  }

  unsigned char* stages_;
  int lane_a_, lane_b_;  // bytes of a stage's rows, or weights, before what this lane asks ldmatrix for
  Fragments fragments_[kAhead ? 2 : 1];
};

}  // namespace flux::sm80
