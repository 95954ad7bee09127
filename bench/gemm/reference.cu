#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <type_traits>

#include "bench/gemm/cuda.h"
#include "bench/gemm/reference.h"

namespace flux::bench {
namespace {

__device__ uint32_t mixed(uint64_t x) {
  x ^= x >> 31, x *= 0x7fb5d329728ea185ull, x ^= x >> 27, x *= 0x81dadef4bc2dd44dull, x ^= x >> 33;
  return static_cast<uint32_t>(x);
}

__device__ constexpr float span_of(int8_t) { return 127; }
template <class T>
__device__ constexpr float span_of(T) {
  return 1;
}

template <class T>
__global__ void fill(T* data, int64_t count, uint32_t seed, int64_t first) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x)
    data[i] = static_cast<T>(span_of(T{}) * (mixed((uint64_t{seed} << 40) + first + i) * 0x1p-31f - 1.f));
}

struct Layout {
  int64_t m, n, k, columns;
  bool in_out, gated, gelu;
};

__device__ int64_t sampled_row(Layout const& l, int64_t sample, int rows) {
  return (sample * l.m / rows + sample * 7919) % l.m;  // not the first row of every shard
}

/// By a warp.
template <class T>
__device__ double dot_of(Layout const& l, T const* x, T const* w, int64_t row, int64_t j) {
  double sum = 0;
  for (int64_t p = threadIdx.x % 32; p < l.k; p += 32)
    sum += double{static_cast<float>(x[row * l.k + p])} * static_cast<float>(w[l.in_out ? p * l.n + j : j * l.k + p]);
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  return sum;
}

// One warp an element of a sampled row, here and below.
template <class T>
__global__ void add(Layout l, T const* x, T const* w, int rows, double* sums) {
  int64_t const warp = (blockIdx.x * int64_t{blockDim.x} + threadIdx.x) / 32;
  if (warp >= rows * l.columns) return;
  double const value = dot_of(l, x, w, sampled_row(l, warp / l.columns, rows), warp % l.columns);
  if (threadIdx.x % 32 == 0) sums[warp] += value;
}

// sums[0] += (out - ref)², sums[1] += ref².
template <class T, class R>
__global__ void compare(Layout l, T const* x, T const* w, R const* bias, R const* rest, double const* others,
                        R const* out, int rows, double* sums) {
  int64_t const warp = (blockIdx.x * int64_t{blockDim.x} + threadIdx.x) / 32;
  int const lane = threadIdx.x % 32;
  if (warp >= rows * l.columns) return;
  int64_t const column = warp % l.columns, row = sampled_row(l, warp / l.columns, rows);
  auto dot = [&](int64_t j) { return dot_of(l, x, w, row, j) + (bias ? static_cast<float>(bias[j]) : 0.f); };
  double value = dot(column);
  if (l.gelu) value = 0.5 * value * (1 + erf(value * 0.70710678118654752));
  if (l.gated) value = value / (1 + exp(-value)) * dot(l.columns + column);
  if (rest) value += static_cast<float>(rest[row * l.columns + column]);
  if (others) value += others[warp];
  if (lane == 0) {
    double const difference = static_cast<float>(out[row * l.columns + column]) - value;
    atomicAdd(sums, difference * difference);
    atomicAdd(sums + 1, value * value);
  }
}

Layout layout_of(GemmProblem const& p) {
  return {
      p.m, p.rank_n(), p.rank_k(), p.columns(), p.layout == WeightLayout::kInOut, p.gated(), p.epilogue == "bias_gelu"};
}

constexpr int kThreads = 256;
unsigned blocks_of(Layout const& l, int rows) {
  return static_cast<unsigned>((rows * l.columns * 32 + kThreads - 1) / kThreads);
}

template <class F>
auto with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kI8: return f(static_cast<int8_t*>(nullptr));
    case DType::kF8: return f(static_cast<__nv_fp8_e4m3*>(nullptr));
    case DType::kF16: return f(static_cast<__half*>(nullptr));
    default: return f(static_cast<__nv_bfloat16*>(nullptr));
  }
}

}  // namespace

void fill_random(void* data, DType dtype, int64_t count, uint32_t seed, int64_t first) {
  with_type(dtype, [&]<class T>(T*) { fill<<<1024, 256>>>(static_cast<T*>(data), count, seed, first); });
  must(cudaGetLastError());
}

void add_products(GemmProblem const& p, void const* x, void const* weight, int rows, double* sums) {
  Layout const l = layout_of(p);
  with_type(p.dtype, [&]<class T>(T*) {
    add<<<blocks_of(l, rows), kThreads>>>(l, static_cast<T const*>(x), static_cast<T const*>(weight), rows, sums);
  });
  must(cudaGetLastError());
}

double error_of(GemmProblem const& p, void const* x, void const* weight, void const* bias, void const* out, int rows,
                void const* rest, double const* others) {
  Layout const l = layout_of(p);
  Buffer sums(16);
  must(cudaMemset(sums.data(), 0, 16));
  with_type(p.dtype, [&]<class T>(T*) {
    using R = std::conditional_t<sizeof(T) == 1, __nv_bfloat16, T>;
    compare<<<blocks_of(l, rows), kThreads>>>(l, static_cast<T const*>(x), static_cast<T const*>(weight),
                                              static_cast<R const*>(bias), static_cast<R const*>(rest), others,
                                              static_cast<R const*>(out), rows, static_cast<double*>(sums.data()));
  });
  double host[2];
  must(cudaMemcpy(host, sums.data(), 16, cudaMemcpyDeviceToHost));
  return std::sqrt(host[0] / host[1]);
}

}  // namespace flux::bench
