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

// Who comes after in the stream sees the abort word, if the wait failed.
__global__ void wait_for_word(Word const* word, Word goal, __grid_constant__ Watch const watch, int source) {
  await(word, goal, watch, Awaited::kRows, source, 0);
}

}  // namespace

void wait_for_rows(Word const* word, Word goal, Watch const& watch, int source, CUstream_st* stream) {
  wait_for_word<<<1, 1, 0, stream>>>(word, goal, watch, source);
  must(cudaGetLastError());
}

void copy_rows(CopiesBothWays const& copies, CUstream_st* stream) {
  copy<<<kBlocks, kThreads, 0, stream>>>(copies);
  must(cudaGetLastError());
}

}  // namespace flux::bench
