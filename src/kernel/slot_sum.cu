#include "kernel/slot_sum.h"

#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "kernel/check.h"

namespace flux {
namespace {

constexpr int kThreads = 256;
constexpr int kMostSharing = 8;  // blocks of a cluster

// Eight elements, one 16-byte access.
template <class T>
struct alignas(16) Eight {
  T x[8];
};

template <class T>
__device__ Eight<T> load(void const* data, int64_t index) {
  return *reinterpret_cast<Eight<T> const*>(static_cast<T const*>(data) + index);
}
template <class T>
__device__ void add(float (&sum)[8], Eight<T> const& part) {
#pragma unroll
  for (int i = 0; i < 8; ++i) sum[i] += static_cast<float>(part.x[i]);
}

// Blocks of a cluster share rows: each takes every `blocks`-th stretch of columns.
struct Sharing {
  int block = 0, blocks = 1;
  __device__ int64_t first() const { return (int64_t{1} * block * kThreads + threadIdx.x) * 8; }
  __device__ int64_t step() const { return int64_t{1} * blocks * kThreads * 8; }
};

/// The sum of `mine` over the blocks that share a row, the same in every thread.
__device__ float add_over_row(float mine, Sharing const& sharing) {
  __shared__ float warps[kThreads / 32];
  for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(~0u, mine, distance);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (float warp : warps) sum += warp;
#if __CUDA_ARCH__ >= 900
  if (sharing.blocks > 1) {
    __shared__ float blocks[kMostSharing];
    auto const cluster = cooperative_groups::this_cluster();
    if (int const to = threadIdx.x; to < sharing.blocks) cluster.map_shared_rank(blocks, to)[sharing.block] = sum;
    cluster.sync();
    sum = 0;
    for (int b = 0; b < sharing.blocks; ++b) sum += blocks[b];
    cluster.sync();  // `blocks` is read everywhere
    return sum;
  }
#endif
  __syncthreads();  // `warps` is read
  return sum;
}

/// Writes one row of y, and returns this thread's part of its sum of squares.
template <class T>
__device__ float sum_row(SlotSum const& s, int64_t row, bool whole, Sharing const& sharing) {
  constexpr int kTogether = 4;  // loads of slots on their way at a time
  int64_t const n = s.out.columns;
  float squares = 0;
  for (int64_t column = sharing.first(); column < n; column += sharing.step()) {
    float sum[8] = {};
    for (int first = 0; first < s.parts; first += kTogether) {
      Eight<T> slots[kTogether];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        int const part = first + i;
        bool const own = part == s.own_part;
        if (part < s.parts)
          slots[i] = load<T>(own ? s.own : s.slots, ((own ? 0 : part * s.slot_rows) + row) * n + column);
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i)
        if (first + i < s.parts) add(sum, slots[i]);
    }
    if (s.bias) add(sum, load<T>(s.bias.data, column));
    if (s.residual) add(sum, load<T>(s.residual.data, row * s.residual.stride + column));
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
__device__ void norm_row(SlotSum const& s, int64_t row, float scale, Sharing const& sharing) {
  for (int64_t column = sharing.first(); column < s.out.columns; column += sharing.step()) {
    float y[8] = {}, gamma[8] = {};
    add(y, load<T>(s.out.data, row * s.out.stride + column));
    add(gamma, load<T>(s.norm_weight.data, column));
    Eight<T> normed;
#pragma unroll
    for (int i = 0; i < 8; ++i) normed.x[i] = static_cast<T>(y[i] * scale * gamma[i]);
    *reinterpret_cast<Eight<T>*>(static_cast<T*>(s.normed.data) + row * s.normed.stride + column) = normed;
  }
}

// Four blocks a processor: without that word ptxas aims at 32 registers for sm_80, and spills.
template <class T>
__global__ void __launch_bounds__(kThreads, 4) add_up(__grid_constant__ SlotSum const s, int sharing_blocks) {
  Sharing const sharing{static_cast<int>(blockIdx.x) % sharing_blocks, sharing_blocks};
  int const team = static_cast<int>(blockIdx.x) / sharing_blocks, teams = static_cast<int>(gridDim.x) / sharing_blocks;
  int const bands = s.bands.count(s.owner);
  // Blocks share a band, so that a few late words hold back few of them: a team takes every `teams`-th row.
  for (int b = 0; b < bands; ++b) {
    Place const band = s.bands.place(s.owner, b);
    bool ok = !s.watch.abort.at(s.watch.rank) || !aborted(s.watch);
    if (int const source = threadIdx.x; s.words && source < s.sources)
      ok = await(s.words + s.bands.index(source, b), s.goal, s.watch, Awaited::kPartial, source, band.row);
    bool const whole = __syncthreads_and(ok);  // and what those threads acquired is visible to the block
    for (int64_t row = band.row + team; row < band.row + band.rows; row += teams) {
      float const squares = sum_row<T>(s, row, whole, sharing);
      if (!s.normed) continue;
      float const scale = rsqrtf(add_over_row(squares, sharing) / s.out.columns + s.norm_epsilon);
      norm_row<T>(s, row, scale, sharing);
    }
  }
}

/// Few rows are shared, so that all of them are under way at once.
int blocks_of_row(SlotSum const& s, int blocks) {
  int device = 0, major = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "compute capability");
  if (major < 9 || !s.alone) return 1;
  int sharing = 1;
  auto fits = [&](int64_t more) {
    return more <= kMostSharing && more * s.out.rows <= blocks && (more - 1) * kThreads * 8 < s.out.columns;
  };
  while (fits(2 * sharing)) sharing *= 2;
  return sharing;
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
  if (s.out.dtype != DType::kBF16 && s.out.dtype != DType::kF16)
    throw Error(ErrorKind::kUnsupported, "slots hold bf16 or fp16, not " + std::string(name(s.out.dtype)));
  int const sharing = blocks_of_row(s, blocks);
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(sharing), 1, 1};
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>(std::min<int64_t>(blocks / sharing, s.out.rows) * sharing));
  launch.blockDim = dim3(kThreads), launch.stream = stream;
  launch.attrs = &cluster, launch.numAttrs = sharing > 1 ? 1 : 0;
  auto const kernel = s.out.dtype == DType::kBF16 ? add_up<__nv_bfloat16> : add_up<__half>;
  check_cuda(cudaLaunchKernelEx(&launch, kernel, s, sharing), "launching the slot sum");
}

}  // namespace flux
