// What the protocol assumes of a GPU and its driver, tried out: can a word be set, a copy made and a word waited for
// while a kernel holds every multiprocessor? Each trial is bounded: the kernel gives up by itself. With two GPUs the
// same is tried from the peer. Prints one line a trial; exit code 1 if the words that FLUX relies on do not arrive.
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "bench/probe/check.h"
#include "tile/signal.h"

namespace flux {
namespace {

constexpr int64_t kGiveUpNs = 300'000'000;
constexpr size_t kBulk = 8 << 20;

// Every block waits for `word`; block 0 then sets `answer` (peer or host memory, or none). `seen_ns` is how long it
// took, -1 if it gave up. `started` is set in host memory once all blocks run.
__global__ void hold(Word const* word, Word goal, Word* answer, Word* arrived, Word* started, int64_t* seen_ns) {
  extern __shared__ char room[];  // so large that no second block fits beside this one
  if (threadIdx.x != 0) return;
  room[0] = 0;
  if (count_up(arrived) + 1 == gridDim.x) store_release(started, goal);
  int64_t const start = now_ns();
  while (load_acquire(word) != goal) {
    if (now_ns() - start > kGiveUpNs) {
      if (blockIdx.x == 0) *seen_ns = -1;
      return;
    }
  }
  if (blockIdx.x == 0) {
    *seen_ns = now_ns() - start;
    if (answer) store_release(answer, goal);
  }
}
__global__ void set_word(Word* word, Word value) { store_release(word, value); }

struct Bench {
  int device, blocks, room;
  cudaStream_t held, side;
  Word *word, *arrived, *host_words;  // host_words: pinned; [0] started, [1] answer, [2] a constant to copy
  int64_t* seen_ns;
  char *from, *to, *pinned;

  explicit Bench(int d) : device(d) {
    CHECK(cudaSetDevice(d));
    cudaDeviceProp p;
    CHECK(cudaGetDeviceProperties(&p, d));
    blocks = p.multiProcessorCount, room = static_cast<int>(p.sharedMemPerBlockOptin);
    CHECK(cudaFuncSetAttribute(hold, cudaFuncAttributeMaxDynamicSharedMemorySize, room));
    cudaFuncAttributes loaded;
    CHECK(cudaFuncGetAttributes(&loaded, set_word));  // lazy loading would wait for the held GPU
    CHECK(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&word, 256));
    CHECK(cudaMalloc(&arrived, 256));
    CHECK(cudaHostAlloc(&host_words, 256, cudaHostAllocPortable));
    CHECK(cudaHostAlloc(&seen_ns, 256, cudaHostAllocPortable));
    CHECK(cudaMalloc(&from, kBulk));
    CHECK(cudaMalloc(&to, kBulk));
    CHECK(cudaHostAlloc(&pinned, kBulk, cudaHostAllocPortable));
    CHECK(cudaMemset(from, 7, kBulk));
    CHECK(cudaDeviceSynchronize());
  }

  void reset() {
    CHECK(cudaSetDevice(device));
    CHECK(cudaMemset(word, 0, 256));
    CHECK(cudaMemset(arrived, 0, 256));
    CHECK(cudaDeviceSynchronize());
    host_words[0] = host_words[1] = 0, host_words[2] = 1;
    *seen_ns = 0;
  }
  void launch(Word* answer = nullptr) {
    hold<<<blocks, 32, room, held>>>(word, 1, answer, arrived, host_words, seen_ns);
    CHECK(cudaGetLastError());
  }
  bool wait_until_held() const {
    auto const limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    while (*static_cast<Word volatile*>(host_words) == 0)
      if (std::chrono::steady_clock::now() > limit) return false;
    return true;
  }
};

// Runs `set` while every SM is held, and says whether the word arrived.
bool trial(char const* what, Bench& b, std::function<void()> const& set, bool before_kernel = false) {
  std::printf("  %-78s", what);
  b.reset();
  if (before_kernel) set();
  b.launch();
  bool const held = before_kernel || b.wait_until_held();
  if (!before_kernel) set();
  CHECK(cudaSetDevice(b.device));
  CHECK(cudaStreamSynchronize(b.held));
  CHECK(cudaDeviceSynchronize());
  bool const ok = *b.seen_ns >= 0;
  std::printf(" %s%s", ok ? "arrives" : "DOES NOT ARRIVE while the SMs are held", held ? "" : " (never held)");
  if (ok) std::printf(", %.1f us after the kernel began to wait", static_cast<double>(*b.seen_ns) / 1e3);
  std::printf("\n");
  return ok;
}

CUdeviceptr address(void* p) { return reinterpret_cast<CUdeviceptr>(p); }

// The same as nodes of a graph: the kernel on one branch, the word on another.
bool graph_trial(char const* what, Bench& b, std::function<void(cudaStream_t)> const& set, int replays) {
  std::printf("  %-78s", what);
  b.reset();
  cudaEvent_t fork, join;
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  cudaGraph_t graph;
  cudaGraphExec_t runnable;
  CHECK(cudaStreamBeginCapture(b.held, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaEventRecord(fork, b.held));
  CHECK(cudaStreamWaitEvent(b.side, fork, 0));
  set(b.side);
  CHECK(cudaEventRecord(join, b.side));
  b.launch();
  CHECK(cudaStreamWaitEvent(b.held, join, 0));
  CHECK(cudaStreamEndCapture(b.held, &graph));
  CHECK(cudaGraphInstantiate(&runnable, graph, 0));
  int good = 0;
  int64_t slowest = 0;
  for (int i = 0; i < replays; ++i) {
    b.reset();
    CHECK(cudaGraphLaunch(runnable, b.held));
    CHECK(cudaStreamSynchronize(b.held));
    good += *b.seen_ns >= 0;
    slowest = std::max(slowest, *b.seen_ns);
  }
  std::printf(" %d of %d replays, at most %.1f us\n", good, replays, static_cast<double>(slowest) / 1e3);
  CHECK(cudaGraphExecDestroy(runnable));
  CHECK(cudaGraphDestroy(graph));
  return good == replays;
}

bool one_gpu(Bench& b) {
  bool ok = true;
  std::printf("GPU %d, %d SMs held by one block each with all its shared memory:\n", b.device, b.blocks);
  auto write = [&](cudaStream_t s) {
    CHECK(cuStreamWriteValue32(s, address(b.word), 1, CU_STREAM_WRITE_VALUE_DEFAULT));
  };
  auto copy_word = [&](cudaStream_t s) {
    CHECK(cudaMemcpyAsync(b.word, b.host_words + 2, 4, cudaMemcpyHostToDevice, s));
  };
  ok &= trial("cuStreamWriteValue32 on another stream, enqueued after the kernel", b, [&] { write(b.side); });
  ok &= trial(
      "cuStreamWriteValue32 on another stream, enqueued before the kernel", b, [&] { write(b.side); }, true);
  ok &= trial("a word copied from pinned host memory", b, [&] { copy_word(b.side); });
  ok &= trial("8 MiB copied from pinned host memory, then a stream write", b, [&] {
    CHECK(cudaMemcpyAsync(b.to, b.pinned, kBulk, cudaMemcpyHostToDevice, b.side));
    write(b.side);
  });
  trial("8 MiB copied within the GPU, then a stream write (such copies may be kernels)", b, [&] {
    CHECK(cudaMemcpyAsync(b.to, b.from, kBulk, cudaMemcpyDeviceToDevice, b.side));
    write(b.side);
  });
  trial("4 bytes copied within the GPU, then a stream write", b, [&] {
    CHECK(cudaMemcpyAsync(b.to, b.from, 4, cudaMemcpyDeviceToDevice, b.side));
    write(b.side);
  });
  trial("a memset, then a stream write", b, [&] {
    CHECK(cudaMemsetAsync(b.to, 0, kBulk, b.side));
    write(b.side);
  });
  trial("a one-thread kernel on another stream", b, [&] { set_word<<<1, 1, 0, b.side>>>(b.word, 1); });
  ok &= graph_trial("graph: stream write on a branch beside the kernel", b, write, 1000);
  ok &= graph_trial(
      "graph: 8 MiB from pinned memory and a stream write on a branch", b,
      [&](cudaStream_t s) {
        CHECK(cudaMemcpyAsync(b.to, b.pinned, kBulk, cudaMemcpyHostToDevice, s));
        write(s);
      },
      200);

  // A word set by the kernel, waited for by a stream; and one in pinned memory, seen by the host while the kernel runs.
  std::printf("  %-78s", "cuStreamWaitValue32 on a word that the kernel releases, then a stream write to the host");
  b.reset();
  Word* echo = b.word + 8;
  b.launch(echo);
  b.wait_until_held();
  CHECK(cuStreamWaitValue32(b.side, address(echo), 1, CU_STREAM_WAIT_VALUE_EQ));
  CHECK(cuStreamWriteValue32(b.side, address(b.host_words + 4), 1, CU_STREAM_WRITE_VALUE_DEFAULT));
  b.host_words[4] = 0;
  cudaStream_t third;
  CHECK(cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking));
  CHECK(cuStreamWriteValue32(third, address(b.word), 1, CU_STREAM_WRITE_VALUE_DEFAULT));
  CHECK(cudaDeviceSynchronize());
  std::printf(" %s\n", b.host_words[4] == 1 ? "works" : "FAILS");
  ok &= b.host_words[4] == 1;
  return ok;
}

bool two_gpus(Bench& b, Bench& peer) {
  bool ok = true;
  std::printf("GPU %d held, its words and data from GPU %d:\n", b.device, peer.device);
  auto write = [&](cudaStream_t s) {
    CHECK(cuStreamWriteValue32(s, address(b.word), 1, CU_STREAM_WRITE_VALUE_DEFAULT));
  };
  auto on_peer = [&](std::function<void()> const& f) {
    return [&, f] {
      CHECK(cudaSetDevice(peer.device));
      f();
    };
  };
  ok &= trial("the peer's stream write", b, on_peer([&] { write(peer.side); }));
  ok &= trial("8 MiB pushed by the peer's copy engine, then its stream write", b, on_peer([&] {
                CHECK(cudaMemcpyAsync(b.to, peer.from, kBulk, cudaMemcpyDeviceToDevice, peer.side));
                write(peer.side);
              }));
  ok &= trial("8 MiB pulled by our copy engine, then our stream write", b, [&] {
    CHECK(cudaMemcpyAsync(b.to, peer.from, kBulk, cudaMemcpyDeviceToDevice, b.side));
    write(b.side);
  });
  ok &= trial("a kernel of the peer stores the word", b, on_peer([&] { set_word<<<1, 1, 0, peer.side>>>(b.word, 1); }));
  // Both GPUs held, each by a kernel that waits for the other's; the first word comes from a stream write.
  b.reset(), peer.reset();
  CHECK(cudaSetDevice(peer.device));
  hold<<<peer.blocks, 32, peer.room, peer.held>>>(peer.word, 1, b.word, peer.arrived, peer.host_words, peer.seen_ns);
  CHECK(cudaSetDevice(b.device));
  b.launch();
  b.wait_until_held(), peer.wait_until_held();
  CHECK(cuStreamWriteValue32(b.side, address(peer.word), 1, CU_STREAM_WRITE_VALUE_DEFAULT));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaSetDevice(peer.device));
  CHECK(cudaDeviceSynchronize());
  bool const both = *b.seen_ns >= 0 && *peer.seen_ns >= 0;
  std::printf("  %-78s %s\n", "both GPUs held: our stream write frees the peer's kernel, whose store frees ours",
              both ? "works" : "FAILS");
  return ok && both;
}

}  // namespace
}  // namespace flux

int main() {
  using namespace flux;
  setvbuf(stdout, nullptr, _IONBF, 0);  // what hangs is what was printed last
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  char const* connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  std::printf("CUDA_DEVICE_MAX_CONNECTIONS %s, %d GPU(s)\n", connections ? connections : "not set", count);
  Bench first(0);
  bool ok = one_gpu(first);
  if (count > 1) {
    Bench second(1);
    CHECK(cudaSetDevice(0));
    CHECK(cudaDeviceEnablePeerAccess(1, 0));
    CHECK(cudaSetDevice(1));
    CHECK(cudaDeviceEnablePeerAccess(0, 0));
    ok &= two_gpus(first, second);
    ok &= two_gpus(second, first);
  }
  std::printf("%s\n", ok ? "all that FLUX relies on holds" : "SOMETHING THAT FLUX RELIES ON DOES NOT HOLD");
  return ok ? 0 : 1;
}
