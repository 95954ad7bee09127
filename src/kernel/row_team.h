#pragma once
// Blocks that share rows: a team takes every so manieth row, and its blocks, a cluster, parts of each. CUDA.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <string>

#include "kernel/check.h"
#include "kernel/summed_rows.h"

namespace flux {

inline constexpr int kTeamThreads = 256;  // of a block
inline constexpr int kMostSharing = 8;    // blocks of a cluster

struct RowTeam {
  int block, blocks;  // of the team
  int index, count;   // of teams
  __device__ explicit RowTeam(int sharing)
      : block(static_cast<int>(blockIdx.x) % sharing),
        blocks(sharing),
        index(static_cast<int>(blockIdx.x) / sharing),
        count(static_cast<int>(gridDim.x) / sharing) {}
  /// Pieces of a row that this thread takes.
  __device__ int64_t first() const { return int64_t{1} * block * kTeamThreads + threadIdx.x; }
  __device__ int64_t step() const { return int64_t{1} * blocks * kTeamThreads; }
};

/// The sum of `mine` over the team, the same in every thread.
__device__ inline float add_over_team(float mine, RowTeam const& team) {
  __shared__ float warps[kTeamThreads / 32];
  for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(~0u, mine, distance);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (float warp : warps) sum += warp;
#if __CUDA_ARCH__ >= 900
  if (team.blocks > 1) {
    __shared__ float blocks[kMostSharing];
    auto const cluster = cooperative_groups::this_cluster();
    if (int const to = threadIdx.x; to < team.blocks) cluster.map_shared_rank(blocks, to)[team.block] = sum;
    cluster.sync();
    sum = 0;
    for (int b = 0; b < team.blocks; ++b) sum += blocks[b];
    cluster.sync();  // `blocks` is read everywhere
    return sum;
  }
#endif
  __syncthreads();  // `warps` is read
  return sum;
}

/// Launches `kernel(sum, blocks of a team)` for `rows` rows of `pieces` pieces, a thread one at a time, on up to
/// `blocks` blocks. Throws Error for rows that kernels do not add up.
template <class Sum>
void launch_row_teams(void (*of_bf16)(Sum, int), void (*of_fp16)(Sum, int), Sum const& sum, int64_t pieces,
                      int64_t rows, int blocks, CUstream_st* stream) {
  SummedRows const& s = sum;
  if (s.out.columns % 8 != 0 || s.out.stride % 8 != 0 || (s.residual && s.residual.stride % 8 != 0) ||
      (s.normed && s.normed.stride % 8 != 0))
    throw Error(ErrorKind::kUnsupported,
                "n=" + std::to_string(s.out.columns) +
                    ": slots are added up 8 columns at a time; n and row pitches are multiples of 8");
  if (rows == 0 || s.out.columns == 0) return;
  if (s.out.dtype != DType::kBF16 && s.out.dtype != DType::kF16)
    throw Error(ErrorKind::kUnsupported, "slots hold bf16 or fp16, not " + std::string(name(s.out.dtype)));
  int device = 0, major = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "compute capability");
  int sharing = 1;  // few rows are shared, so that all of them are under way at once
  auto fits = [&](int64_t more) {
    return more <= kMostSharing && more * rows <= blocks && more / 2 * kTeamThreads < pieces;
  };
  while (major >= 9 && s.alone && fits(2 * sharing)) sharing *= 2;
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(sharing), 1, 1};
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>(std::min<int64_t>(std::max(blocks / sharing, 1), rows) * sharing));
  launch.blockDim = dim3(kTeamThreads), launch.stream = stream;
  launch.attrs = &cluster, launch.numAttrs = sharing > 1 ? 1 : 0;
  check_cuda(cudaLaunchKernelEx(&launch, s.out.dtype == DType::kBF16 ? of_bf16 : of_fp16, sum, sharing),
             "launching the sum of rows");
}

}  // namespace flux
