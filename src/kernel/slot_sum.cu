#include "kernel/slot_sum.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernel/check.h"

namespace flux {
namespace {

constexpr int kThreads = 256;

// Eight elements, one 16-byte access.
template <class T>
struct alignas(16) Eight {
  T x[8];
};

template <class T>
__device__ void add(float (&sum)[8], void const* data, int64_t index) {
  Eight<T> const part = *reinterpret_cast<Eight<T> const*>(static_cast<T const*>(data) + index);
#pragma unroll
  for (int i = 0; i < 8; ++i) sum[i] += static_cast<float>(part.x[i]);
}

/// The sum of `mine` over the block, the same in every thread.
__device__ float add_over_block(float mine) {
  __shared__ float parts[kThreads / 32];
  for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(~0u, mine, distance);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (float part : parts) sum += part;
  __syncthreads();  // `parts` is read
  return sum;
}

/// Writes one row of y, and returns this thread's part of its sum of squares.
template <class T>
__device__ float sum_row(SlotSum const& s, int64_t row, bool whole) {
  int64_t const n = s.out.columns;
  float squares = 0;
  for (int64_t column = threadIdx.x * 8; column < n; column += kThreads * 8) {
    float sum[8] = {};
#pragma unroll 2
    for (int part = 0; part < s.parts; ++part) {
      bool const own = part == s.own_part;
      add<T>(sum, own ? s.own : s.slots, ((own ? 0 : part * s.slot_rows) + row) * n + column);
    }
    if (s.bias) add<T>(sum, s.bias.data, column);
    if (s.residual) add<T>(sum, s.residual.data, row * s.residual.stride + column);
    Eight<T> out;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      out.x[i] = static_cast<T>(whole ? sum[i] : __int_as_float(0x7fffffff));
      squares += sum[i] * sum[i];
    }
    *reinterpret_cast<Eight<T>*>(static_cast<T*>(s.out.data) + row * s.out.stride + column) = out;
  }
  return squares;
}

/// From the row of y that these same threads have just written.
template <class T>
__device__ void norm_row(SlotSum const& s, int64_t row, float scale) {
  for (int64_t column = threadIdx.x * 8; column < s.out.columns; column += kThreads * 8) {
    float y[8] = {}, gamma[8] = {};
    add<T>(y, s.out.data, row * s.out.stride + column);
    add<T>(gamma, s.norm_weight.data, column);
    Eight<T> normed;
#pragma unroll
    for (int i = 0; i < 8; ++i) normed.x[i] = static_cast<T>(y[i] * scale * gamma[i]);
    *reinterpret_cast<Eight<T>*>(static_cast<T*>(s.normed.data) + row * s.normed.stride + column) = normed;
  }
}

// Four blocks a processor: without that word ptxas aims at 32 registers for sm_80, and spills.
template <class T>
__global__ void __launch_bounds__(kThreads, 4) add_up(__grid_constant__ SlotSum const s) {
  int const bands = s.bands.count(s.owner);
  // Blocks share a band, so that a few late words hold back few of them: block b takes every gridDim-th row.
  for (int b = 0; b < bands; ++b) {
    Place const band = s.bands.place(s.owner, b);
    bool ok = !s.watch.abort.at(s.watch.rank) || !aborted(s.watch);
    if (int const source = threadIdx.x; s.words && source < s.sources)
      ok = await(s.words + s.bands.index(source, b), s.goal, s.watch, Awaited::kPartial, source, band.row);
    bool const whole = __syncthreads_and(ok);  // and what those threads acquired is visible to the block
    for (int64_t row = band.row + blockIdx.x; row < band.row + band.rows; row += gridDim.x) {
      float const squares = sum_row<T>(s, row, whole);
      if (s.normed) norm_row<T>(s, row, rsqrtf(add_over_block(squares) / s.out.columns + s.norm_epsilon));
    }
  }
}

}  // namespace

void prepare_slot_sum() {
  cudaFuncAttributes attributes;
  check_cuda(cudaFuncGetAttributes(&attributes, add_up<__nv_bfloat16>), "loading the slot sum");
  check_cuda(cudaFuncGetAttributes(&attributes, add_up<__half>), "loading the slot sum");
}

void sum_slots(SlotSum const& s, int blocks, CUstream_st* stream) {
  if (s.out.columns % 8 != 0 || s.out.stride % 8 != 0 || (s.residual && s.residual.stride % 8 != 0) ||
      (s.normed && s.normed.stride % 8 != 0))
    throw Error(ErrorKind::kUnsupported,
                "n=" + std::to_string(s.out.columns) +
                    ": slots are added up 8 columns at a time; n and row pitches are multiples of 8");
  if (s.out.rows == 0 || s.out.columns == 0) return;
  if (s.out.dtype == DType::kBF16)
    add_up<__nv_bfloat16><<<blocks, kThreads, 0, stream>>>(s);
  else if (s.out.dtype == DType::kF16)
    add_up<__half><<<blocks, kThreads, 0, stream>>>(s);
  else
    throw Error(ErrorKind::kUnsupported, "slots hold bf16 or fp16, not " + std::string(name(s.out.dtype)));
  check_cuda(cudaGetLastError(), "launching the slot sum");
}

}  // namespace flux
