#include "bench/gemm/copy_rows.h"
#include "bench/gemm/cuda.h"

namespace flux::bench {
namespace {

constexpr int kBlocks = 32, kThreads = 512, kInFlight = 4;  // enough loads under way for a link of some 2 us

__global__ void __launch_bounds__(kThreads) copy(__grid_constant__ CopiesBothWays const copies) {
  bool const in = blockIdx.x % 2 == 0;
  int64_t const first = blockIdx.x / 2 * kThreads + threadIdx.x, stride = int64_t{kBlocks / 2} * kThreads;
  for (int p = 0; p < kMaxRanks; ++p) {
    CopyOfRows const c = in ? copies.in[p] : copies.out[p];
    int64_t const words = c.bytes / 16;
    auto const from = static_cast<uint4 const*>(c.from);
    auto const to = static_cast<uint4*>(c.to);
    for (int64_t i = first; i < words; i += stride * kInFlight) {
      uint4 word[kInFlight];
#pragma unroll
      for (int j = 0; j < kInFlight; ++j)
        if (i + j * stride < words) word[j] = from[i + j * stride];
#pragma unroll
      for (int j = 0; j < kInFlight; ++j)
        if (i + j * stride < words) to[i + j * stride] = word[j];
    }
  }
}

}  // namespace

void copy_rows(CopiesBothWays const& copies, CUstream_st* stream) {
  copy<<<kBlocks, kThreads, 0, stream>>>(copies);
  must(cudaGetLastError());
}

}  // namespace flux::bench
