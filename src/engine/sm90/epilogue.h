#pragma once
// What happens to accumulators before they leave: bias, activation, gate times up, residual, rounding.
//
// A thread of a warpgroup holds, of each 64-row product and each 8 columns, elements (row, column), (row, column + 1),
// (row + 8, column), (row + 8, column + 1), with row = 16 warp + lane / 4 and column = 2 (lane % 4).
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cutlass/bfloat16.h>
#include <cutlass/half.h>

#include "engine/sm90/operands.h"

namespace flux::sm90 {

__device__ inline uint32_t pack(float x, float y, cutlass::bfloat16_t) {
  __nv_bfloat162 const both = __floats2bfloat162_rn(x, y);
  return reinterpret_cast<uint32_t const&>(both);
}
__device__ inline uint32_t pack(float x, float y, cutlass::half_t) {
  __half2 const both = __floats2half2_rn(x, y);
  return reinterpret_cast<uint32_t const&>(both);
}
__device__ inline float2 unpack(uint32_t both, cutlass::bfloat16_t) {
  return __bfloat1622float2(reinterpret_cast<__nv_bfloat162 const&>(both));
}
__device__ inline float2 unpack(uint32_t both, cutlass::half_t) {
  return __half22float2(reinterpret_cast<__half2 const&>(both));
}
template <class T>
__device__ float2 load_pair(void const* base, int64_t index) {
  return unpack(__ldg(reinterpret_cast<uint32_t const*>(static_cast<T const*>(base) + index)), T{});
}

__device__ inline float sigmoid_curve(float x, Sigmoid s) {
  return __fdividef(x, 1 + __expf(-x * (s.slope + s.cube * x * x)));
}

/// 0.5 x (1 + erf(x / √2)), erf by a rational polynomial in 1 / (1 + p|z|) (Abramowitz and Stegun 7.1.26, error below
/// 2e-7: far less than a rounding to 16 bits).
__device__ inline float erf_curve(float x) {
  float const z = fabsf(x) * 0.70710678f, t = __fdividef(1.f, 1 + 0.3275911f * z);
  float const poly = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  return 0.5f * x * (1 + copysignf(1 - poly * __expf(-z * z), x));
}

template <int kCount>
__device__ void apply(Epilogue const& e, float* d) {
  if (e.curve == Epilogue::Curve::kSigmoid) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) d[i] = sigmoid_curve(d[i], e.sigmoid);
  } else if (e.curve == Epilogue::Curve::kErf) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) d[i] = erf_curve(d[i]);
  }
}

/// Finishes `d`, the kN columns of one 64-row product. `column`: the output column of its first (gated: of its first
/// gate column; the finished columns are then the first half). `row`: the output row of this thread's first element.
template <int kN, bool kGateable, class T>
__device__ void finish(Epilogue const& e, float (&d)[kN / 2], int64_t row, int64_t rows, int column, int columns,
                       int up) {
  int const mine = column + threadIdx.x % 4 * 2;
  if (e.bias) {
#pragma unroll
    for (int u = 0; u < kN / 8; ++u) {
      bool const second = kGateable && e.gated && u >= kN / 16;
      int const at = mine + 8 * (second ? u - kN / 16 : u);
      if (at >= columns) continue;
      float2 const bias = load_pair<T>(e.bias, at + (second ? up : 0));
      d[4 * u] += bias.x, d[4 * u + 1] += bias.y, d[4 * u + 2] += bias.x, d[4 * u + 3] += bias.y;
    }
  }
  if (kGateable && e.gated) {
    apply<kN / 4>(e, d);
#pragma unroll
    for (int i = 0; i < kN / 4; ++i) d[i] *= d[i + kN / 4];
  } else {
    apply<kN / 2>(e, d);
  }
  if (e.residual) {
#pragma unroll
    for (int u = 0; u < kN / 8; ++u)
#pragma unroll
      for (int low = 0; low < 2; ++low) {
        int const at = mine + 8 * u;
        int64_t const r = row + 8 * low;
        if (at >= columns || r >= rows) continue;
        float2 const add = load_pair<T>(e.residual, r * e.residual_stride + at);
        d[4 * u + 2 * low] += add.x, d[4 * u + 2 * low + 1] += add.y;
      }
  }
}

}  // namespace flux::sm90
