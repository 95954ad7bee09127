#include "world/cuda/nccl.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <climits>
#include <cstring>
#include <future>
#include <numeric>
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
constexpr int kInProgress = 7;
constexpr int kFirstWordMs = 1000, kWordComesMs = 3000;  // how long others may take to say why NCCL fails
constexpr int kEnqueuedMs = 100;                         // longer than what waits for nobody takes to be enqueued

// ncclConfig_t as of 2.17, the first whose communicators can be kept to a number of blocks. Later versions read no
// further than `size` says.
struct Config {
  static constexpr int kVersion = 21700, kLeft = INT_MIN;  // left: to NCCL
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef, version = kVersion;
  int blocking = kLeft, cluster = kLeft, least_blocks = kLeft, most_blocks = kLeft;
  char const* network = nullptr;
};

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
  int (*init_rank_config)(void**, int, UniqueId, int, Config*) = nullptr;  // since 2.14
  int (*async_error)(void*, int*) = nullptr;
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
    find("ncclCommGetAsyncError", async_error);
    init_rank_config = reinterpret_cast<decltype(init_rank_config)>(dlsym(handle, "ncclCommInitRankConfig"));
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

namespace {

int version_number() {
  int version = 0;  // 22809 is 2.28.9
  return no_nccl().empty() && nccl().get_version(&version) == 0 ? version : 0;
}

}  // namespace

std::string nccl_version() {
  int const version = version_number();
  return version == 0 ? "" : fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string no_nccl_for_rails() {
  if (!no_nccl().empty()) return no_nccl();
  if (version_number() >= Config::kVersion && nccl().init_rank_config) return {};
  return fmt::format(
      "NCCL {} is here, whose kernels cannot be kept to a few multiprocessors; install NCCL 2.17 or later",
      nccl_version());
}

Nccl::Nccl(std::vector<int> ranks, int rank, int device)
    : ranks_(std::move(ranks)), rank_(index_of(rank)), device_(device) {}

std::shared_ptr<Nccl> Nccl::open(Bootstrap& bootstrap, int device, double limit_seconds) {
  std::vector<int> all(bootstrap.size());
  std::iota(all.begin(), all.end(), 0);
  return open(bootstrap, std::shared_ptr<Nccl>(new Nccl(all, bootstrap.rank(), device)), 0, limit_seconds);
}

std::shared_ptr<Nccl> Nccl::open_rail(Bootstrap& bootstrap, std::vector<int> ranks, int device, int blocks,
                                      double limit_seconds) {
  auto made = std::shared_ptr<Nccl>(new Nccl(std::move(ranks), bootstrap.rank(), device));
  return open(bootstrap, std::move(made), blocks, limit_seconds);
}

namespace {

// NCCL connects two ranks when they first exchange something, allocates then, and loads its kernels: not beside a GEMM
// that waits.
int meet_all(void* communicator, int rank, int ranks) {
  std::byte* memory = nullptr;
  cudaStream_t stream = nullptr;
  int status = 0;
  if (cudaMalloc(&memory, 2 * static_cast<size_t>(ranks)) != cudaSuccess) return 1;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess) {
    for (int i = 1; i < ranks && status == 0; ++i) {
      int const to = (rank + i) % ranks, from = (rank - i + ranks) % ranks;
      nccl().group_start();
      status = nccl().send(memory + to, 1, kBytes, to, communicator, stream);
      if (status == 0) status = nccl().receive(memory + ranks + from, 1, kBytes, from, communicator, stream);
      int const ended = nccl().group_end();
      if (status == 0) status = ended;
    }
    if (status == 0 && cudaStreamSynchronize(stream) != cudaSuccess) status = 1;
    cudaStreamDestroy(stream);
  }
  cudaFree(memory);
  return status;
}

}  // namespace

std::shared_ptr<Nccl> Nccl::open(Bootstrap& bootstrap, std::shared_ptr<Nccl> mine, int blocks, double limit_seconds) {
  UniqueId id{};
  together(bootstrap, limit_seconds, [&] {
    std::string const missing = blocks > 0 ? no_nccl_for_rails() : no_nccl();
    if (!missing.empty()) throw Error(ErrorKind::kUnsupported, missing);
    if (mine->rank_ == 0) check_nccl(nccl().get_unique_id(&id), "a number for the ranks to meet");
  });
  auto const ids = bootstrap.all_gather({id.bytes, sizeof id.bytes}, limit_seconds);
  std::memcpy(id.bytes, ids[mine->ranks_[0]].data(), sizeof id.bytes);
  together(bootstrap, limit_seconds, [&] {
    // NCCL waits for all ranks without an end, so another thread does; past the limit it is left to itself.
    struct Result {
      void* communicator = nullptr;
      int status = 0;
    };
    auto result = std::make_shared<std::promise<Result>>();
    auto made = result->get_future();
    std::thread([=, rank = mine->rank_, ranks = static_cast<int>(mine->ranks_.size()), device = mine->device_] {
      Result r;
      Config config;
      config.most_blocks = blocks;
      cudaSetDevice(device);
      if (blocks > 0)
        r.status = nccl().init_rank_config(&r.communicator, ranks, id, rank, &config);
      else
        r.status = nccl().init_rank(&r.communicator, ranks, id, rank);
      if (r.status == 0 && blocks > 0) r.status = meet_all(r.communicator, rank, ranks);
      result->set_value(r);
    }).detach();
    if (made.wait_for(std::chrono::duration<double>(limit_seconds)) != std::future_status::ready)
      throw Error(ErrorKind::kTimeout, fmt::format("NCCL did not bring the ranks together in {:g} s", limit_seconds));
    Result const r = made.get();
    check_nccl(r.status, "bringing the ranks together");
    mine->communicator_ = r.communicator;
    check_cuda(cudaSetDevice(mine->device_), "choosing a GPU");
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
  struct Enqueueing {
    std::atomic<bool>& flag;
    ~Enqueueing() { flag = false; }
  };
  enqueueing_ = true;  // before the question whether it has ended: end() asks the other way round
  Enqueueing const until_here{enqueueing_};
  if (ended_) return;
  since_ns_ = now_ns();
  check_nccl(nccl().group_start(), what);
  int const status = act(), ended = nccl().group_end();
  if (ended_) return;  // given up meanwhile: the world says why
  if (status != 0 || ended != 0) {
    // A peer that is gone: the watcher hears of it, and the world ends by that.
    for (int i = 0; i < kWordComesMs && !ended_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (ended_) return;
  }
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
        status = nccl().send(p.data, static_cast<size_t>(p.bytes), kBytes, index_of(p.peer), communicator_, stream);
    for (Piece const& p : receives)
      if (p.bytes > 0 && status == 0)
        status = nccl().receive(p.data, static_cast<size_t>(p.bytes), kBytes, index_of(p.peer), communicator_, stream);
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
double Nccl::stalled_seconds() const {
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

// A connection that broke is reported at once, and so is a peer that is gone, which others know more about: theirs is
// the word for a second. Waits of this rank's own, behind which an exchange may stand, say more too when they give up.
std::string Nccl::trouble(double limit_seconds) {
  if (!communicator_ || ended_) return {};
  if (stalled_seconds() > limit_seconds * 1.25)
    return fmt::format("waited more than {} s for an exchange through NCCL: a rank has not come to the call",
                       limit_seconds);
  int status = 0;
  if (nccl().async_error(communicator_, &status) != 0 || status == 0 || status == kInProgress) return {};
  if (failed_ns_ == 0) failed_ns_ = now_ns();
  return now_ns() - failed_ns_ > kFirstWordMs * int64_t{1'000'000}
             ? fmt::format("heard from NCCL: '{}' (NCCL_DEBUG=WARN says more)", nccl().error_string(status))
             : std::string();
}

void Nccl::end() {
  if (!communicator_ || ended_.exchange(true)) return;
  // What is enqueued this moment uses the communicator. It may also wait for a rank that does not come: then that ends
  // it.
  for (int i = 0; i < kEnqueuedMs && enqueueing_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  cudaSetDevice(device_);
  nccl().abort(communicator_);
}

}  // namespace flux
