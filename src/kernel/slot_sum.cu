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

template <class T>
// Four blocks a processor: without that word ptxas aims at 32 registers for sm_80, and spills.
__global__ void __launch_bounds__(kThreads, 4) add_up(__grid_constant__ SlotSum const s) {
  int64_t const n = s.out.columns;
  int const bands = s.bands.count(s.owner);
  // Blocks share a band, so that a few late words hold back few of them: block b takes every gridDim-th row.
  for (int b = 0; b < bands; ++b) {
    Place const band = s.bands.place(s.owner, b);
    __shared__ bool whole;
    if (threadIdx.x == 0) {
      whole = true;
      for (int source = 0; source < s.ranks && whole; ++source)
        whole = await(s.words + s.bands.index(source, b), s.goal, s.watch, Awaited::kPartial, source, band.row);
    }
    __syncthreads();  // what thread 0 acquired is visible to the block
    for (int64_t row = band.row + blockIdx.x; row < band.row + band.rows; row += gridDim.x)
      for (int64_t column = threadIdx.x * 8; column < n; column += kThreads * 8) {
        float sum[8] = {};
#pragma unroll 2
        for (int source = 0; source < s.ranks; ++source)
          add<T>(sum, s.slots, (source * s.slot_rows + row) * n + column);
        if (s.bias) add<T>(sum, s.bias.data, column);
        if (s.residual) add<T>(sum, s.residual.data, row * s.residual.stride + column);
        Eight<T> out;
#pragma unroll
        for (int i = 0; i < 8; ++i) out.x[i] = static_cast<T>(whole ? sum[i] : __int_as_float(0x7fffffff));
        *reinterpret_cast<Eight<T>*>(static_cast<T*>(s.out.data) + row * s.out.stride + column) = out;
      }
    __syncthreads();  // `whole` is read
  }
}

}  // namespace

void prepare_slot_sum() {
  cudaFuncAttributes attributes;
  check_cuda(cudaFuncGetAttributes(&attributes, add_up<__nv_bfloat16>), "loading the slot sum");
  check_cuda(cudaFuncGetAttributes(&attributes, add_up<__half>), "loading the slot sum");
}

void sum_slots(SlotSum const& s, int blocks, CUstream_st* stream) {
  if (s.out.columns % 8 != 0 || s.out.stride % 8 != 0 || (s.residual && s.residual.stride % 8 != 0))
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
