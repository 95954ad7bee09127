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
constexpr int kBytes = 0, kSum = 0;  // ncclInt8, ncclSum

int number_type(DType dtype) {
  switch (dtype) {
    case DType::kF16: return 6;
    case DType::kF32: return 7;
    case DType::kF64: return 8;
    case DType::kBF16: return 9;
    case DType::kI8:
    case DType::kF8: break;  // are not added up
  }
  return 0;
}

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
  int (*all_gather)(void const*, void*, size_t, int, void*, cudaStream_t) = nullptr;
  int (*broadcast)(void const*, void*, size_t, int, int, void*, cudaStream_t) = nullptr;
  int (*reduce_scatter)(void const*, void*, size_t, int, int, void*, cudaStream_t) = nullptr;
  int (*reduce)(void const*, void*, size_t, int, int, int, void*, cudaStream_t) = nullptr;
  int (*all_reduce)(void const*, void*, size_t, int, int, void*, cudaStream_t) = nullptr;
  int (*get_version)(int*) = nullptr;
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
    find("ncclAllGather", all_gather), find("ncclBroadcast", broadcast), find("ncclReduceScatter", reduce_scatter);
    find("ncclReduce", reduce), find("ncclAllReduce", all_reduce), find("ncclGetVersion", get_version);
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

std::string nccl_version() {
  int version = 0;  // 22809 is 2.28.9
  if (!no_nccl().empty() || nccl().get_version(&version) != 0) return {};
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::shared_ptr<Nccl> Nccl::open(Bootstrap& bootstrap, int device, double limit_seconds) {
  std::shared_ptr<Nccl> mine(new Nccl);
  mine->device_ = device, mine->rank_ = bootstrap.rank();
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

template <class Act>
void Nccl::enqueue(char const* what, Stream stream, Act&& act) {
  if (ended_) return;
  struct Enqueueing {
    std::atomic<bool>& flag;
    ~Enqueueing() { flag = false; }
  };
  enqueueing_ = true, since_ns_ = now_ns();
  Enqueueing const until_here{enqueueing_};
  check_nccl(nccl().group_start(), what);
  int const status = act(), ended = nccl().group_end();
  if (ended_) return;  // given up meanwhile: the world says why
  check_nccl(status != 0 ? status : ended, what);
  cudaStreamCaptureStatus captured;
  check_cuda(cudaStreamIsCapturing(stream, &captured), "whether a stream is captured");
  if (captured == cudaStreamCaptureStatusNone)
    check_cuda(cudaEventRecord(last_, stream), "marking an exchange's end");
  else
    since_ns_ = 0;
}

void Nccl::exchange(std::span<Piece const> sends, std::span<Piece const> receives, Stream stream) {
  enqueue("an exchange", stream, [&] {
    int status = 0;
    for (Piece const& p : sends)
      if (p.bytes > 0 && status == 0)
        status = nccl().send(p.data, static_cast<size_t>(p.bytes), kBytes, p.peer, communicator_, stream);
    for (Piece const& p : receives)
      if (p.bytes > 0 && status == 0)
        status = nccl().receive(p.data, static_cast<size_t>(p.bytes), kBytes, p.peer, communicator_, stream);
    return status;
  });
}

// NCCL's collectives know parts of one size; ragged ones are as many broadcasts or reductions, in one group.
void Nccl::all_gather(std::byte* all, Shards const& rows, int64_t row_bytes, Stream stream) {
  enqueue("an all-gather", stream, [&] {
    if (rows.total % rows.ranks == 0)
      return nccl().all_gather(all + rows.begin(rank_) * row_bytes, all, static_cast<size_t>(rows.size(0) * row_bytes),
                               kBytes, communicator_, stream);
    int status = 0;
    for (int p = 0; p < rows.ranks && status == 0; ++p) {
      std::byte* const at = all + rows.begin(p) * row_bytes;
      if (rows.size(p) > 0)
        status =
            nccl().broadcast(at, at, static_cast<size_t>(rows.size(p) * row_bytes), kBytes, p, communicator_, stream);
    }
    return status;
  });
}

void Nccl::reduce_scatter(std::byte const* all, std::byte* to, Shards const& rows, int64_t columns, DType dtype,
                          Stream stream) {
  enqueue("a reduce-scatter", stream, [&] {
    int const type = number_type(dtype);
    if (rows.total % rows.ranks == 0)
      return nccl().reduce_scatter(all, to, static_cast<size_t>(rows.size(0) * columns), type, kSum, communicator_,
                                   stream);
    int status = 0;
    for (int p = 0; p < rows.ranks && status == 0; ++p)
      if (rows.size(p) > 0)
        status = nccl().reduce(all + rows.begin(p) * columns * size_of(dtype), to,
                               static_cast<size_t>(rows.size(p) * columns), type, kSum, p, communicator_, stream);
    return status;
  });
}

void Nccl::all_reduce(std::byte const* from, std::byte* to, int64_t count, DType dtype, Stream stream) {
  enqueue("an all-reduce", stream, [&] {
    return nccl().all_reduce(from, to, static_cast<size_t>(count), number_type(dtype), kSum, communicator_, stream);
  });
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
