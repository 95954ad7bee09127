#include "kernel/copy_rows.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "kernel/check.h"

namespace flux {
namespace {

constexpr int kThreads = 512, kUnroll = 8;  // 64 KiB of loads under way hide the latency of a link

struct Work {
  struct List {
    Transfer copies[kCopyCounts];
    int count;
    Word* counts;
  } lists[2];
  int blocks, team;  // of a list, of a copy
  bool fp16;
  Watch watch;
};

template <class Two>
__device__ unsigned add_two(unsigned a, unsigned b) {
  Two x = *reinterpret_cast<Two*>(&a), y = *reinterpret_cast<Two*>(&b);
  if constexpr (std::is_same_v<Two, __half2>) {
    float2 const f = __half22float2(x), g = __half22float2(y);
    x = __floats2half2_rn(f.x + g.x, f.y + g.y);
  } else {
    float2 const f = __bfloat1622float2(x), g = __bfloat1622float2(y);
    x = __floats2bfloat162_rn(f.x + g.x, f.y + g.y);
  }
  return *reinterpret_cast<unsigned*>(&x);
}

__device__ uint4 add_eight(uint4 a, uint4 b, bool fp16) {
  if (fp16)
    return {add_two<__half2>(a.x, b.x), add_two<__half2>(a.y, b.y), add_two<__half2>(a.z, b.z),
            add_two<__half2>(a.w, b.w)};
  return {add_two<__nv_bfloat162>(a.x, b.x), add_two<__nv_bfloat162>(a.y, b.y), add_two<__nv_bfloat162>(a.z, b.z),
          add_two<__nv_bfloat162>(a.w, b.w)};
}

/// This block's part of a copy: vectors of 16 bytes, in turn with the other blocks.
__device__ void copy_part(Transfer const& t, int block, int blocks, bool fp16) {
  int64_t const wide = t.row_bytes / 16, all = t.rows * wide, step = int64_t{1} * blocks * kThreads;
  bool const dense = t.to_stride == t.row_bytes && t.from_stride == t.row_bytes;
  auto place = [&](int64_t i, int64_t stride) {
    if (dense) return i * 16;
    int64_t const row = quotient(i, wide);
    return row * stride + (i - row * wide) * 16;
  };
  for (int64_t first = int64_t{1} * block * kThreads + threadIdx.x; first < all; first += kUnroll * step) {
    uint4 data[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (int64_t const i = first + u * step; i < all)
        data[u] = *reinterpret_cast<uint4 const*>(t.from + place(i, t.from_stride));
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (int64_t const i = first + u * step; i < all) {
        int64_t const at = place(i, t.to_stride);
        if (t.add) data[u] = add_eight(*reinterpret_cast<uint4 const*>(t.add + at), data[u], fp16);
        *reinterpret_cast<uint4*>(t.to + at) = data[u];
      }
  }
}

__global__ void __launch_bounds__(kThreads, 1) copy_rows(__grid_constant__ Work const work) {
  Work::List const& list = work.lists[blockIdx.x / work.blocks];
  int const block = static_cast<int>(blockIdx.x) % work.blocks, teams = work.blocks / work.team;
  for (int i = block / work.team; i < list.count; i += teams) {
    Transfer const& t = list.copies[i];
    bool ok = true;
    if (threadIdx.x == 0 && t.after) ok = await(t.after, t.goal, work.watch, t.awaited, t.awaited_from, t.row);
    if (threadIdx.x == 0 && ok && t.add_after)
      ok = await(t.add_after, t.goal, work.watch, t.awaited, t.awaited_from, t.row);
    if (!__syncthreads_and(ok)) return;  // what thread 0 acquired is visible to the block
    if (t.to) copy_part(t, block % work.team, work.team, work.fp16);
    __syncthreads();  // the stores of all threads come before the count below
    if (threadIdx.x > 0) continue;
    if (work.team > 1) {
      if (count_up(list.counts + i) + 1 != static_cast<Word>(work.team)) continue;
      list.counts[i] = 0;  // for the next launch
    }
    if (t.clear_after) store_release(t.after, 0);
    if (t.set) store_release(t.set, t.goal);  // the whole team has counted: their stores are visible before it
  }
}

}  // namespace

void copy_by_blocks(std::span<BlockCopies const> lists, int blocks, DType dtype, Watch const& watch,
                    CUstream_st* stream) {
  // Small copies go side by side, so that their latencies do: each of a team of blocks.
  constexpr int64_t kBytesOfBlock = 256 << 10;
  size_t most = 0;
  int64_t largest = 0;
  for (BlockCopies const& list : lists) {
    most = std::max(most, list.transfers.size());
    for (Transfer const& t : list.transfers) largest = std::max(largest, t.rows * t.row_bytes);
  }
  int team = static_cast<int>(std::clamp<int64_t>((largest + kBytesOfBlock - 1) / kBytesOfBlock, 1, blocks));
  while (blocks % team != 0) ++team;
  for (size_t first = 0; first < most; first += kCopyCounts) {
    Work work{};
    work.blocks = blocks, work.team = team, work.fp16 = dtype == DType::kF16, work.watch = watch;
    for (size_t l = 0; l < lists.size(); ++l) {
      auto const left = lists[l].transfers.subspan(std::min(first, lists[l].transfers.size()));
      work.lists[l].count = static_cast<int>(std::min<size_t>(left.size(), kCopyCounts));
      std::copy_n(left.begin(), work.lists[l].count, work.lists[l].copies);
      work.lists[l].counts = lists[l].counts;
    }
    copy_rows<<<static_cast<int>(lists.size()) * blocks, kThreads, 0, stream>>>(work);
    check_cuda(cudaGetLastError(), "launching copies by blocks");
  }
}

void prepare_copies_by_blocks() {
  cudaFuncAttributes attributes;
  check_cuda(cudaFuncGetAttributes(&attributes, copy_rows), "loading the copies by blocks");
}

}  // namespace flux
