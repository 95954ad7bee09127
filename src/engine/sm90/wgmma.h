#pragma once
// 64 x N x 16 on the tensor cores: operands in shared memory, fp32 accumulators in the registers of a warpgroup.
#define CUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED  // N = 144 ... 208
#include <cutlass/bfloat16.h>
#include <cutlass/half.h>

#include <cute/arch/mma_sm90_gmma.hpp>
#include <utility>

#include "engine/sm90/config.h"

namespace flux::sm90 {

namespace gmma = cute::SM90::GMMA;

template <int kN, class T, gmma::Major kMajorB>
struct Atom;
#define FLUX_ATOM(n)                                                                                               \
  template <gmma::Major kMajorB>                                                                                   \
  struct Atom<n, cutlass::bfloat16_t, kMajorB> : gmma::MMA_64x##n##x16_F32BF16BF16_SS<gmma::Major::K, kMajorB> {}; \
  template <gmma::Major kMajorB>                                                                                   \
  struct Atom<n, cutlass::half_t, kMajorB> : gmma::MMA_64x##n##x16_F32F16F16_SS<gmma::Major::K, kMajorB> {};
FLUX_ATOM(64)
FLUX_ATOM(96)
FLUX_ATOM(128)
FLUX_ATOM(136)
FLUX_ATOM(144)
FLUX_ATOM(152)
FLUX_ATOM(160)
FLUX_ATOM(168)
FLUX_ATOM(176)
FLUX_ATOM(184)
FLUX_ATOM(192)
FLUX_ATOM(224)
FLUX_ATOM(256)
#undef FLUX_ATOM

/// How an operand tile lies in shared memory, for the tensor cores: in 16-byte units. Only the address changes from
/// step to step, so the upper half is a constant.
struct Descriptor {
  uint32_t low;
  static constexpr uint32_t kHigh = 64 | 1u << 30;  // 8-row atoms 1024 bytes apart, 128-byte swizzle

  /// `panel_units`: from one 64-column panel to the next; of no meaning where k is contiguous.
  __device__ static Descriptor of(void const* shared, uint32_t panel_units) {
    // An address within the block: in a cluster, its upper bits number the block.
    return {(cute::cast_smem_ptr_to_uint(shared) >> 4 & 0x3fff) | panel_units << 16};
  }
  __device__ Descriptor operator+(uint32_t units) const { return {low + units}; }
  __device__ uint64_t bits() const { return uint64_t{kHigh} << 32 | low; }
};

/// One kN-wide product of 16 elements of k, added to `d` or, with `add` false, in place of it.
template <int kN, class T, gmma::Major kMajorB, size_t... kI>
__device__ void multiply_add(float (&d)[kN / 2], uint64_t a, uint64_t b, bool add, std::index_sequence<kI...>) {
  Atom<kN, T, kMajorB>::fma(a, b, d[kI]..., add ? gmma::ScaleOut::One : gmma::ScaleOut::Zero);
}

}  // namespace flux::sm90
