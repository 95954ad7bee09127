#include "kernel/check.h"
#include "kernel/prove.h"

namespace flux {
namespace {

constexpr int kThreads = 256;

__global__ void write(Word* to, int64_t count, Word seed, Word* word, Word value) {
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) to[i] = pattern(seed, i);
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) store_release(word, value);
}

__global__ void check(Word const* from, int64_t count, Word seed, Word const* word, Word value, Word* wrong) {
  __shared__ Word differ;
  if (threadIdx.x == 0) differ = load_acquire(word) == value ? 0 : 2;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
    if (load_acquire(from + i) != pattern(seed, i)) atomicMax(&differ, 1u);
  __syncthreads();
  if (threadIdx.x == 0) *wrong = differ;
}

}  // namespace

void enqueue_pattern(Word* to, int64_t count, Word seed, Word* word, Word value, CUstream_st* stream) {
  write<<<1, kThreads, 0, stream>>>(to, count, seed, word, value);
  check_cuda(cudaGetLastError(), "launching stores for the proof of a link");
}

void enqueue_check(Word const* from, int64_t count, Word seed, Word const* word, Word value, Word* wrong,
                   CUstream_st* stream) {
  check<<<1, kThreads, 0, stream>>>(from, count, seed, word, value, wrong);
  check_cuda(cudaGetLastError(), "launching loads for the proof of a link");
}

}  // namespace flux
