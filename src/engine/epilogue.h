#pragma once
// What happens to accumulators before they leave: bias, activation, gate times up, rounding.
//
// All engines' products lie alike: of 16 rows a warp (64 a warpgroup) and each 8 columns, a thread holds the elements
// (row, column), (row, column + 1), (row + 8, column), (row + 8, column + 1), with row = 16 warp + lane / 4 and
// column = 2 (lane % 4).
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cutlass/bfloat16.h>
#include <cutlass/half.h>

#include <cstdint>

namespace flux {

/// The curve x · sigmoid(x · (first + third·x² + fifth·x⁴)). All activations are one of these: exactly SiLU, quick
/// GELU, the tanh form of GELU and, with a slope beyond all bounds, ReLU; within 3e-5 the erf form of GELU.
struct Curve {
  float first, third, fifth;
};

struct Epilogue {
  bool curved = false;
  Curve curve{};
  bool gated = false;          // a tile holds gate columns, then as many up columns
  void const* bias = nullptr;  // one for each weight column, of the operands' type
};

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
__device__ inline float2 load_pair(float const* at) { return __ldg(reinterpret_cast<float2 const*>(at)); }
template <class T>
__device__ float2 load_pair(T const* at) {
  return unpack(__ldg(reinterpret_cast<uint32_t const*>(at)), T{});
}

__device__ inline float bend(float x, Curve c) {
  float const square = fminf(x * x, 36.f);  // beyond, the sigmoid is 0 or 1
  return __fdividef(x, 1 + __expf(-x * (c.first + square * (c.third + square * c.fifth))));
}

template <int kCount>
__device__ void bend_all(Curve const& curve, float* d) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) d[i] = bend(d[i], curve);
}

/// Calls f(u, pair) for this thread's pairs of numbers `of_columns`, two of every 8 columns of one product, where they
/// are columns of the weight. `column` as below.
template <int kN, bool kGateable, class T, class F>
__device__ void each_pair(T const* of_columns, bool gated, int column, int columns, int up, F&& f) {
  gated = kGateable && gated;
  int const mine = column + threadIdx.x % 4 * 2;
  T const* const first = of_columns + mine;
  T const* const second = gated ? first + up - kN / 2 : first;  // of the tile's second half
  int const end = columns - mine;
#pragma unroll
  for (int u = 0; u < kN / 8; ++u) {
    bool const half = u >= kN / 16;
    if (8 * u - (half && gated ? kN / 2 : 0) >= end) continue;
    f(u, load_pair((half ? second : first) + 8 * u));
  }
}

/// Finishes `d`, the kN columns of one product. `column`: the output column of its first (gated: of its first
/// gate column; the finished columns are then the first half).
template <int kN, bool kGateable, class T>
__device__ void finish(Epilogue const& e, float (&d)[kN / 2], int column, int columns, int up) {
  bool const gated = kGateable && e.gated;
  if (e.bias)
    each_pair<kN, kGateable>(static_cast<T const*>(e.bias), gated, column, columns, up, [&](int u, float2 bias) {
      d[4 * u] += bias.x, d[4 * u + 1] += bias.y, d[4 * u + 2] += bias.x, d[4 * u + 3] += bias.y;
    });
  constexpr int kFirst = kGateable ? kN / 4 : kN / 2;
  if (e.curved) bend_all<kFirst>(e.curve, d);
  if (e.curved && !gated) bend_all<kN / 2 - kFirst>(e.curve, d + kFirst);
  if (gated) {
#pragma unroll
    for (int i = 0; i < kN / 4; ++i) d[i] *= d[i + kN / 4];
  }
}

}  // namespace flux
