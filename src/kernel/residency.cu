#include "kernel/residency.h"

#include "kernel/check.h"
#include "tile/signal.h"

namespace flux {
namespace {

constexpr int kSharedBytes = 227 * 1024;

// words[0] counts those who came, words[1] those who saw all come.
__global__ void meet(Word* words, Word all, int64_t limit_ns) {
  if (threadIdx.x != 0) return;
  count_up(&words[0]);
  int64_t const begin = now_ns();
  while (load_acquire(&words[0]) < all)
    if (now_ns() - begin > limit_ns) return;
  count_up(&words[1]);
}

}  // namespace

bool resident_together(std::span<CUstream_st* const> streams, int blocks, double limit_seconds) {
  int shared = 0, device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "shared memory");
  shared = shared < kSharedBytes ? shared : kSharedBytes;
  check_cuda(cudaFuncSetAttribute(meet, cudaFuncAttributeMaxDynamicSharedMemorySize, shared), "shared memory");
  Word* words = nullptr;
  check_cuda(cudaMalloc(&words, 2 * sizeof(Word)), "cudaMalloc");
  check_cuda(cudaMemset(words, 0, 2 * sizeof(Word)), "cudaMemset");
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  Word const all = static_cast<Word>(streams.size() * blocks);
  for (CUstream_st* stream : streams)
    meet<<<blocks, 32, shared, stream>>>(words, all, static_cast<int64_t>(limit_seconds * 1e9));
  check_cuda(cudaGetLastError(), "launching the meeting of all blocks");
  check_cuda(cudaDeviceSynchronize(), "the meeting of all blocks");
  Word seen[2];
  check_cuda(cudaMemcpy(seen, words, sizeof seen, cudaMemcpyDeviceToHost), "cudaMemcpy");
  check_cuda(cudaFree(words), "cudaFree");
  return seen[1] == all;
}

}  // namespace flux
