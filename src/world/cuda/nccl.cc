#include "world/cuda/nccl.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <future>
#include <thread>

#include "kernel/check.h"
#include "tile/signal.h"
#include "world/cuda/peer_memory.h"
#include "world/together.h"

namespace flux {
namespace {

struct UniqueId {  // ncclUniqueId
  char bytes[128];
};
constexpr int kBytes = 0;  // ncclInt8

// What we use of NCCL 2, in the library's own types.
struct Library {
  std::string missing;
  int (*get_unique_id)(UniqueId*) = nullptr;
  int (*init_rank)(void**, int, UniqueId, int) = nullptr;
  int (*abort)(void*) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*send)(void const*, size_t, int, int, void*, cudaStream_t) = nullptr;
  int (*receive)(void*, size_t, int, int, void*, cudaStream_t) = nullptr;
  char const* (*error_string)(int) = nullptr;

  Library() {
    void* const handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      char const* const why = dlerror();
      missing =
          fmt::format("NCCL cannot be opened ({}); install NCCL (libnccl2) or put its folder into LD_LIBRARY_PATH",
                      why ? why : "no reason is given");
      return;
    }
    auto find = [&](char const* name, auto& function) {
      void* const found = dlsym(handle, name);
      if (!found && missing.empty()) missing = fmt::format("libnccl.so.2 has no {}; install NCCL 2.7 or later", name);
      function = reinterpret_cast<std::decay_t<decltype(function)>>(found);
    };
    find("ncclGetUniqueId", get_unique_id), find("ncclCommInitRank", init_rank), find("ncclCommAbort", abort);
    find("ncclCommDestroy", destroy), find("ncclGroupStart", group_start), find("ncclGroupEnd", group_end);
    find("ncclSend", send), find("ncclRecv", receive), find("ncclGetErrorString", error_string);
  }
};

Library const& nccl() {
  static Library const library;
  return library;
}

void check_nccl(int status, char const* what) {
  if (status != 0)
    throw Error(ErrorKind::kDevice, fmt::format("{}: NCCL says '{}'", what, nccl().error_string(status)));
}

}  // namespace

std::string no_nccl() { return nccl().missing; }

std::shared_ptr<Nccl> Nccl::open(Bootstrap& bootstrap, int device, double limit_seconds) {
  std::shared_ptr<Nccl> mine(new Nccl);
  mine->device_ = device;
  UniqueId id{};
  together(bootstrap, limit_seconds, [&] {
    if (!no_nccl().empty()) throw Error(ErrorKind::kUnsupported, no_nccl());
    if (bootstrap.rank() == 0) check_nccl(nccl().get_unique_id(&id), "a number for the ranks to meet");
  });
  auto const ids = bootstrap.all_gather({id.bytes, sizeof id.bytes}, limit_seconds);
  std::memcpy(id.bytes, ids[0].data(), sizeof id.bytes);
  together(bootstrap, limit_seconds, [&] {
    // NCCL waits for all ranks without an end, so another thread does; past the limit it is left to itself.
    struct Result {
      void* communicator = nullptr;
      int status = 0;
    };
    auto result = std::make_shared<std::promise<Result>>();
    auto made = result->get_future();
    std::thread([=, rank = bootstrap.rank(), ranks = bootstrap.size()] {
      Result r;
      cudaSetDevice(device);
      r.status = nccl().init_rank(&r.communicator, ranks, id, rank);
      result->set_value(r);
    }).detach();
    if (made.wait_for(std::chrono::duration<double>(limit_seconds)) != std::future_status::ready)
      throw Error(ErrorKind::kTimeout, fmt::format("NCCL did not bring the ranks together in {:g} s", limit_seconds));
    Result const r = made.get();
    check_nccl(r.status, "bringing the ranks together");
    mine->communicator_ = r.communicator;
    check_cuda(cudaSetDevice(device), "choosing a GPU");
    check_cuda(cudaEventCreateWithFlags(&mine->last_, cudaEventDisableTiming), "an event");
  });
  return mine;
}

Nccl::~Nccl() {
  if (gave_up_on_gpu()) return;
  if (last_) cudaEventDestroy(last_);
  if (communicator_ && !ended_) nccl().destroy(communicator_);
}

void Nccl::exchange(std::span<Piece const> sends, std::span<Piece const> receives, Stream stream) {
  if (ended_) return;
  struct Enqueueing {
    std::atomic<bool>& flag;
    ~Enqueueing() { flag = false; }
  };
  enqueueing_ = true, since_ns_ = now_ns();
  Enqueueing const until_here{enqueueing_};
  check_nccl(nccl().group_start(), "an exchange");
  int status = 0;
  for (Piece const& p : sends)
    if (p.bytes > 0 && status == 0)
      status = nccl().send(p.data, static_cast<size_t>(p.bytes), kBytes, p.peer, communicator_, stream);
  for (Piece const& p : receives)
    if (p.bytes > 0 && status == 0)
      status = nccl().receive(p.data, static_cast<size_t>(p.bytes), kBytes, p.peer, communicator_, stream);
  int const ended = nccl().group_end();
  if (ended_) return;  // given up meanwhile: the world says why
  check_nccl(status != 0 ? status : ended, "an exchange");
  cudaStreamCaptureStatus captured;
  check_cuda(cudaStreamIsCapturing(stream, &captured), "whether a stream is captured");
  if (captured == cudaStreamCaptureStatusNone)
    check_cuda(cudaEventRecord(last_, stream), "marking an exchange's end");
  else
    since_ns_ = 0;
}

// Calls come one after the other, so what is asked for is the last one's end, counted from when it was enqueued.
double Nccl::stalled_seconds() {
  int64_t const since = since_ns_;
  if (since == 0 || ended_) return 0;
  if (!enqueueing_) {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    cudaError_t const state = cudaEventQuery(last_);
    cudaThreadExchangeStreamCaptureMode(&mode);
    if (state != cudaErrorNotReady) return 0;
  }
  return static_cast<double>(now_ns() - since) / 1e9;
}

void Nccl::end() {
  if (!communicator_ || ended_.exchange(true)) return;
  cudaSetDevice(device_);
  nccl().abort(communicator_);
}

}  // namespace flux
