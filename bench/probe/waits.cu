// What waits, writes and copies of streams cost beside a kernel, enqueued and as a graph: how long after a kernel sets
// a word the copy behind a stream's wait begins, and whether copies both ways stay at full rate while a kernel waits
// for them. Prints a table.
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "bench/probe/check.h"
#include "tile/signal.h"

namespace flux {
namespace {

constexpr int kWords = 16, kMost = 256;
constexpr int64_t kGiveUpNs = 2'000'000'000;

CUdeviceptr address(void* p) { return reinterpret_cast<CUdeviceptr>(p); }

/// Sets a word every `step_ns`, and notes when; block 1 notes when each answer is seen.
__global__ void tick(Word* words, Word* answers, int count, int64_t step_ns, int64_t* set_ns, int64_t* seen_ns) {
  if (threadIdx.x != 0 || blockIdx.x > 1) return;
  int64_t const start = now_ns();
  for (int i = 0; i < count; ++i) {
    if (blockIdx.x == 0) {
      while (now_ns() - start < (i + 1) * step_ns) {
      }
      set_ns[i] = now_ns();
      store_release(words + i, 1);
    } else {
      while (load_acquire(answers + i) != 1)
        if (now_ns() - start > kGiveUpNs) return;
      seen_ns[i] = now_ns();
    }
  }
}

/// Every block waits for all words, as gates do.
__global__ void hold(Word const* words, int count, __grid_constant__ Watch const watch) {
  extern __shared__ char room[];
  if (threadIdx.x != 0) return;
  room[0] = 0;
  for (int i = 0; i < count; ++i)
    if (!await(words + i, 1, watch, Awaited::kRows, 0, 0)) return;
}
__global__ void clear(Word* words, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) words[i] = 0;
}
__global__ void nothing() {}

struct Streams {
  cudaStream_t main, out, in;
  cudaEvent_t fork, joined_out, joined_in, begin, end;
  Streams() {
    for (auto* s : {&main, &out, &in}) CHECK(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    for (auto* e : {&fork, &joined_out, &joined_in}) CHECK(cudaEventCreateWithFlags(e, cudaEventDisableTiming));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
  }
};

void wait(cudaStream_t s, Word* word) { CHECK(cuStreamWaitValue32(s, address(word), 1, CU_STREAM_WAIT_VALUE_EQ)); }
void write(cudaStream_t s, Word* word) {
  CHECK(cuStreamWriteValue32(s, address(word), 1, CU_STREAM_WRITE_VALUE_DEFAULT));
}

/// Milliseconds of what `enqueue` puts on the three streams, forked from and joined with `main`; the least of `rounds`,
/// and the most.
void timed(
    char const* what, Streams& s, bool graph, int rounds, std::function<void()> const& body,
    std::function<void()> const& after = [] {}) {
  auto enqueue = [&] {
    CHECK(cudaEventRecord(s.fork, s.main));
    CHECK(cudaStreamWaitEvent(s.out, s.fork, 0));
    CHECK(cudaStreamWaitEvent(s.in, s.fork, 0));
    body();
    CHECK(cudaEventRecord(s.joined_out, s.out));
    CHECK(cudaEventRecord(s.joined_in, s.in));
    CHECK(cudaStreamWaitEvent(s.main, s.joined_out, 0));
    CHECK(cudaStreamWaitEvent(s.main, s.joined_in, 0));
  };
  cudaGraphExec_t replay = nullptr;
  if (graph) {
    cudaGraph_t captured;
    CHECK(cudaStreamBeginCapture(s.main, cudaStreamCaptureModeThreadLocal));
    enqueue();
    CHECK(cudaStreamEndCapture(s.main, &captured));
    CHECK(cudaGraphInstantiate(&replay, captured, 0));
    CHECK(cudaGraphDestroy(captured));
  }
  std::vector<float> ms(rounds);
  std::printf("  %-64s %-6s", what, graph ? "graph" : "eager");
  for (float& x : ms) {
    CHECK(cudaEventRecord(s.begin, s.main));
    if (graph)
      CHECK(cudaGraphLaunch(replay, s.main));
    else
      enqueue();
    CHECK(cudaEventRecord(s.end, s.main));
    CHECK(cudaStreamSynchronize(s.main));
    CHECK(cudaEventElapsedTime(&x, s.begin, s.end));
  }
  std::sort(ms.begin(), ms.end());
  std::printf(" %9.3f ms, least %.3f, most %.3f", ms[rounds / 2], ms[0], ms.back());
  after();
  std::printf("\n");
  if (replay) CHECK(cudaGraphExecDestroy(replay));
}

}  // namespace
}  // namespace flux

int main() {
  using namespace flux;
  setvbuf(stdout, nullptr, _IONBF, 0);
  char const* connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  std::printf("CUDA_DEVICE_MAX_CONNECTIONS %s\n", connections ? connections : "not set");
  cudaDeviceProp p;
  CHECK(cudaGetDeviceProperties(&p, 0));
  int const room = static_cast<int>(p.sharedMemPerBlockOptin), all = p.multiProcessorCount;
  CHECK(cudaFuncSetAttribute(hold, cudaFuncAttributeMaxDynamicSharedMemorySize, room));
  cudaFuncAttributes loaded;
  CHECK(cudaFuncGetAttributes(&loaded, tick));
  CHECK(cudaFuncGetAttributes(&loaded, clear));
  CHECK(cudaFuncGetAttributes(&loaded, nothing));
  Streams s;
  Word *words, *host_words;
  int64_t *set_ns, *seen_ns;
  constexpr size_t kShard = 32 << 20, kFar = 400 << 20;
  char *from, *to, *host_from, *host_to;
  CHECK(cudaMalloc(&words, 4 * kMost * sizeof(Word)));
  CHECK(cudaHostAlloc(&host_words, 4 * kMost * sizeof(Word), 0));
  CHECK(cudaHostAlloc(&set_ns, kMost * 8, 0));
  CHECK(cudaHostAlloc(&seen_ns, kMost * 8, 0));
  CHECK(cudaMalloc(&from, 7 * kShard));
  CHECK(cudaMalloc(&to, 7 * kShard));
  CHECK(cudaHostAlloc(&host_from, 7 * kFar, 0));
  CHECK(cudaHostAlloc(&host_to, 7 * kFar, 0));
  CHECK(cudaMemset(from, 1, 7 * kShard));
  std::fill(host_from, host_from + 7 * kFar, 3);
  Record* record;
  CHECK(cudaHostAlloc(&record, sizeof(Record), 0));
  std::fill(host_words, host_words + 4 * kMost, 0);
  CHECK(cudaMemset(words, 0, 4 * kMost * sizeof(Word)));

  for (bool graph : {false, true}) {
    // A word every 50 us; the stream waits for it, copies and answers.
    for (size_t bytes : {size_t{0}, size_t{1} << 20})
      for (int waiters : {1, 2})
        for (Word* at : {words, host_words}) {
          char what[96];
          std::snprintf(what, sizeof what, "%d words in %s memory, 50 us apart, %d waiting stream(s), %zu KiB", kWords,
                        at == words ? "device" : "host", waiters, bytes >> 10);
          timed(
              what, s, graph, 5,
              [&] {
                clear<<<1, 128, 0, s.main>>>(at, 3 * kMost);
                CHECK(cudaEventRecord(s.fork, s.main));
                CHECK(cudaStreamWaitEvent(s.out, s.fork, 0));
                CHECK(cudaStreamWaitEvent(s.in, s.fork, 0));
                tick<<<2, 32, 0, s.main>>>(at, at + kMost, kWords, 50'000, set_ns, seen_ns);
                for (int i = 0; i < kWords; ++i) {
                  wait(s.out, at + i);
                  if (bytes) CHECK(cudaMemcpyAsync(host_to, from, bytes, cudaMemcpyDeviceToHost, s.out));
                  write(s.out, at + kMost + i);
                }
                for (int i = 0; waiters == 2 && i < kWords; ++i) {
                  wait(s.in, at + i);
                  if (bytes) CHECK(cudaMemcpyAsync(to, host_from, bytes, cudaMemcpyHostToDevice, s.in));
                  write(s.in, at + 2 * kMost + i);
                }
              },
              [&] {
                std::vector<double> us;
                for (int i = 0; i < kWords; ++i) us.push_back(1e-3 * static_cast<double>(seen_ns[i] - set_ns[i]));
                std::sort(us.begin(), us.end());
                std::printf("; answer after %.1f us, most %.1f", us[kWords / 2], us.back());
              });
        }
    // Copies both ways beside a kernel that waits for them.
    struct Way {
      int blocks, room;
      bool told;
      size_t apart;  // bytes between the shards in host memory
    };
    Watch watch;
    watch.limit_ns = kGiveUpNs, watch.ranks = 1, watch.abort.base[0] = words + 3 * kMost, watch.record = record;
    for (Way const way : {Way{0, 0, false, 1},
                          {all, room, false, 1},
                          {all, room, true, 1},
                          {4 * all, 1024, false, 1},
                          {4 * all, 1024, true, 1},
                          {0, 0, false, kFar},
                          {all, room, true, kFar}}) {
      char what[96];
      size_t const apart = std::max(way.apart, kShard);
      std::snprintf(what, sizeof what, "7 x 32 MiB both ways, %zu MiB apart, %d blocks%s", apart >> 20, way.blocks,
                    way.told ? ", asking the host" : "");
      watch.told.base[0] = way.told ? host_words + 3 * kMost : nullptr;
      timed(what, s, graph, 5, [&] {
        clear<<<1, 128, 0, s.main>>>(words, 3 * kMost);
        CHECK(cudaEventRecord(s.fork, s.main));
        CHECK(cudaStreamWaitEvent(s.out, s.fork, 0));
        CHECK(cudaStreamWaitEvent(s.in, s.fork, 0));
        for (int i = 0; i < 7; ++i) {
          CHECK(cudaMemcpyAsync(host_to + i * apart, from + i * kShard, kShard, cudaMemcpyDeviceToHost, s.out));
          write(s.out, words + i);
        }
        for (int i = 0; i < 7; ++i) {
          CHECK(cudaMemcpyAsync(to + i * kShard, host_from + i * apart, kShard, cudaMemcpyHostToDevice, s.in));
          write(s.in, words + kMost + i);
        }
        if (way.blocks > 0) hold<<<way.blocks, 32, way.room, s.main>>>(words + kMost, 7, watch);
      });
    }
  }
  return 0;
}
