#include "kernel/call.h"

#include "kernel/check.h"

namespace flux {
namespace {

// One warp: it finds room on any multiprocessor that no GEMM holds.
constexpr int kThreads = 32;

/// The peer that this thread speaks to, -1: none. Ranks whose memory is not here are on other nodes, and none.
__device__ int my_peer(CallWords const& call) {
  int const p = static_cast<int>(threadIdx.x);
  return p < call.watch.ranks && p != call.watch.rank && call.begun.at(p) ? p : -1;
}

__global__ void begin(__grid_constant__ CallWords const call) {
  int const p = my_peer(call), rank = call.watch.rank;
  if (p < 0) return;
  Word* const credit = call.credits.at(rank) + p;
  if (!await(credit, kGranted, call.watch, Awaited::kCredit, p, 0)) return;
  store_release(credit, 0);
  store_release(call.begun.at(p) + rank, call.digest);
}

__global__ void tell_readable(__grid_constant__ CallWords const call, __grid_constant__ Symmetric<Word> const words) {
  if (int const p = my_peer(call); p >= 0) store_release(words.at(p) + call.watch.rank, call.digest);
}

/// By all threads of a block, each its part.
__device__ bool wait_for(CallWords const& call, Inputs const& inputs) {
  bool ok = true;
  if (int const p = my_peer(call); inputs.readable && p >= 0)
    ok = await(inputs.readable + p, call.digest, call.watch, Awaited::kRows, p, 0);
  if (!inputs.arrival.words) return ok;
  Shards const& shards = inputs.arrival.layout.shards;
  int const slices = inputs.arrival.slices().ranks;
  for (int i = threadIdx.x; ok && i < shards.ranks * slices; i += blockDim.x) {
    int const source = i / slices;
    if (shards.size(source) > 0) ok = inputs.arrival.wait({shards.begin(source), shards.size(source)}, i % slices);
  }
  return ok;
}

// Who comes after in the stream sees the abort word, if the wait failed.
__global__ void wait_all(__grid_constant__ CallWords const call, __grid_constant__ Inputs const inputs) {
  wait_for(call, inputs);
}

__global__ void await_one(Word const* word, Word goal, __grid_constant__ Watch const watch, Awaited what, int peer,
                          int64_t row) {
  await(word, goal, watch, what, peer, row);
}

__global__ void tell(Word* words, int count, Word goal, __grid_constant__ Watch const watch) {
  bool const ended = threadIdx.x == 0 && (aborted(watch) || aborted_by_host(watch));
  if (__syncthreads_or(ended)) return;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) store_release(words + i, goal);
}

__global__ void finish(__grid_constant__ CallWords const call, __grid_constant__ Inputs const inputs, Word* words,
                       int64_t count) {
  int const p = my_peer(call), rank = call.watch.rank;
  Word* const begun = call.begun.at(rank) + p;
  bool ok = wait_for(call, inputs);
  ok = ok && (p < 0 || await(begun, call.digest, call.watch, Awaited::kCall, p, 0));
  // The abort word is read after the last input. An ended world gives no credits, so nobody goes on.
  if (!__syncthreads_and(ok && !aborted(call.watch))) return;
  if (p >= 0) *begun = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) words[i] = 0;
  __syncthreads();  // all is cleared before anybody may set it again
  if (p >= 0) store_release(call.credits.at(p) + rank, kGranted);
}

__global__ void tell_time(int64_t* to) { *to = now_ns(); }

void check_launch(char const* what) { check_cuda(cudaGetLastError(), what); }

}  // namespace

void enqueue_begin(CallWords const& call, CUstream_st* stream) {
  begin<<<1, kThreads, 0, stream>>>(call);
  check_launch("launching the beginning of a call");
}
void enqueue_readable(CallWords const& call, Symmetric<Word> const& readable, CUstream_st* stream) {
  tell_readable<<<1, kThreads, 0, stream>>>(call, readable);
  check_launch("telling that rows may be read");
}
void enqueue_wait(CallWords const& call, Inputs const& inputs, CUstream_st* stream) {
  wait_all<<<1, kThreads, 0, stream>>>(call, inputs);
  check_launch("launching a wait");
}
void enqueue_await(Word const* word, Word goal, Watch const& watch, Awaited what, int peer, int64_t row,
                   CUstream_st* stream) {
  await_one<<<1, 1, 0, stream>>>(word, goal, watch, what, peer, row);
  check_launch("launching the wait for a word");
}
void enqueue_tell(Word* words, int count, Word goal, Watch const& watch, CUstream_st* stream) {
  tell<<<1, kThreads, 0, stream>>>(words, count, goal, watch);
  check_launch("setting words of ours");
}
void enqueue_finish(CallWords const& call, Inputs const& inputs, Word* words, int64_t count, CUstream_st* stream) {
  finish<<<1, kThreads, 0, stream>>>(call, inputs, words, count);
  check_launch("launching the end of a call");
}

void enqueue_clock(int64_t* to, CUstream_st* stream) {
  tell_time<<<1, 1, 0, stream>>>(to);
  check_launch("reading the GPU's clock");
}

void prepare_calls() {
  cudaFuncAttributes attributes;
  for (void const* kernel : {reinterpret_cast<void const*>(&begin), reinterpret_cast<void const*>(&tell_readable),
                             reinterpret_cast<void const*>(&wait_all), reinterpret_cast<void const*>(&await_one),
                             reinterpret_cast<void const*>(&tell), reinterpret_cast<void const*>(&finish)})
    check_cuda(cudaFuncGetAttributes(&attributes, kernel), "loading the kernels of a call");
}

}  // namespace flux
