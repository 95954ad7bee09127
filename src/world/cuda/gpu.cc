// A GPU by the CUDA runtime, for ranks that are threads of one process.
#include "world/gpu.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <vector>

#include "kernel/call.h"
#include "kernel/check.h"
#include "world/cuda/copy_stream.h"
#include "world/cuda/peer_memory.h"
#include "world/cuda/prove_links.h"

namespace flux {
namespace {

// cudaFree waits for all kernels of the GPU and holds up whoever enqueues meanwhile. Where ranks share the GPU, a
// kernel may be waiting for just that, so blocks are freed when the last rank of this process has left. (Memory of a
// pool is freed without waiting, but streams cannot set words in it.)
class LateFrees {
 public:
  /// Those of this process's GPU 0, as long as anybody has them.
  static std::shared_ptr<LateFrees> shared() {
    static std::mutex mutex;
    static std::weak_ptr<LateFrees> all;
    std::lock_guard lock(mutex);
    auto frees = all.lock();
    if (!frees) all = frees = std::make_shared<LateFrees>();
    return frees;
  }
  ~LateFrees() {
    for (void* block : blocks_) cudaFree(block);
    for (void* block : pinned_) cudaFreeHost(block);
  }
  void add(void* block, bool pinned) {
    std::lock_guard lock(mutex_);
    (pinned ? pinned_ : blocks_).push_back(block);
  }

 private:
  std::mutex mutex_;
  std::vector<void*> blocks_, pinned_;
};

// One context a GPU for all ranks of the process: pointers are the same everywhere. A block lives until the last rank
// that can reach it lets go.
class DeviceMemory final : public SymmetricMemory {
 public:
  DeviceMemory(Bootstrap& bootstrap, std::shared_ptr<std::byte> mine, std::string failure, int device, double limit) {
    struct Card {
      std::shared_ptr<std::byte> const* memory;
      int device;
    } card{&mine, device};
    std::vector<Card> cards;
    for (auto const& bytes : bootstrap.all_gather({reinterpret_cast<char const*>(&card), sizeof card}, limit)) {
      std::memcpy(&card, bytes.data(), sizeof card);
      cards.push_back(card);
    }
    for (int r = 0; r < bootstrap.size(); ++r) {
      owners_.push_back(*cards[r].memory);
      blocks_.base[r] = owners_.back().get();
      if (cards[r].device != device && failure.empty()) failure = enable_peer(device, cards[r].device);
    }
    for (auto const& verdict : bootstrap.all_gather(failure, limit))  // `mine` is read by the others until here
      if (!verdict.empty()) throw Error(ErrorKind::kDevice, verdict);
  }

 private:
  static std::string enable_peer(int device, int peer) {
    int reaches = 0;
    if (cudaDeviceCanAccessPeer(&reaches, device, peer) != cudaSuccess || !reaches)
      return fmt::format("GPU {} cannot reach the memory of GPU {}", device, peer);
    cudaError_t const result = cudaDeviceEnablePeerAccess(peer, 0);
    cudaGetLastError();
    if (result == cudaSuccess || result == cudaErrorPeerAccessAlreadyEnabled) return {};
    return fmt::format("GPU {} got no access to GPU {}: {}", device, peer, cudaGetErrorString(result));
  }
  std::vector<std::shared_ptr<std::byte>> owners_;
};

// Of a mirror: our own block, and one for each rank that is played.
class MirroredMemory final : public SymmetricMemory {
 public:
  /// `make(rank)` makes a block.
  template <class Make>
  MirroredMemory(int rank, int ranks, int64_t bytes, bool filled, Make&& make) {
    for (int r = 0; r < ranks; ++r) {
      owners_.push_back(make(r));
      blocks_.base[r] = owners_.back().get();
      if (filled && r != rank) fill(blocks_.base[r], bytes, r);
    }
  }

 private:
  // Numbers in (-1, 1), as bf16: what the other ranks send. Zeros would cost less power than any real data.
  static void fill(std::byte* block, int64_t bytes, int rank) {
    std::vector<uint16_t> numbers((1 << 20) + 1);
    std::mt19937 random(rank);
    for (auto& x : numbers)
      x = static_cast<uint16_t>(random() & 0x807f) | static_cast<uint16_t>(0x3d80 + random() % 4 * 0x80);
    int64_t const piece = static_cast<int64_t>(numbers.size()) * 2;
    for (int64_t at = 0; at < bytes; at += piece)
      check_cuda(cudaMemcpy(block + at, numbers.data(), std::min(piece, bytes - at), cudaMemcpyDefault), "filling");
    wait_for(nullptr);
  }
  std::vector<std::shared_ptr<std::byte>> owners_;
};

/// Before ranks that are threads share a GPU. Copies within a GPU may be kernels of the driver, which it loads with the
/// first copy of a kind, and a stream gets its queue with its first work: neither while a kernel of another rank waits,
/// be it for that copy. So all of it is done once, ahead.
void prepare_shared() {
  static std::once_flag once;
  std::call_once(once, [] {
    constexpr int kStreams = 28;  // of the GPU's 32 queues
    constexpr size_t kLarge = 8 << 20;
    std::byte* data = nullptr;
    check_cuda(cudaMalloc(&data, 2 * kLarge), "memory to load copies with");
    keep_streams(kStreams, [&](Stream stream) {
      enqueue_clock(reinterpret_cast<int64_t*>(data), stream);
      check_cuda(cudaMemsetAsync(data, 0, 2 * kLarge, stream), "loading copies");
      for (size_t bytes : {size_t{16}, size_t{4096}, kLarge})
        check_cuda(cudaMemcpyAsync(data + kLarge, data, bytes, cudaMemcpyDeviceToDevice, stream), "loading copies");
      for (size_t rows : {2, 128})
        for (size_t columns : {16, 8192})
          check_cuda(cudaMemcpy2DAsync(data + kLarge, columns, data, columns * 2, columns, rows,
                                       cudaMemcpyDeviceToDevice, stream),
                     "loading copies");
    });
    cudaFree(data);
  });
}

class CudaGpu final : public Gpu {
 public:
  CudaGpu(int device, int parts, Partner mirror) : device_(device), parts_(parts), mirror_(mirror) {
    activate();
    if (parts > 1) late_frees_ = LateFrees::shared(), prepare_shared();
    int total = 0;
    check_cuda(cudaDeviceGetAttribute(&total, cudaDevAttrMultiProcessorCount, device), "multiprocessors");
    // Of a shared GPU some processors stay free: blocks that come in pairs do not find a partner everywhere. Where the
    // GPU plays the other ranks too, large copies within it are kernels, which a GEMM that waits for them must leave
    // room.
    constexpr int kSpare = 12;
    processors_ = parts == 1 ? total : std::max((total - kSpare) / parts / 2 * 2, 2);
    most_processors_ = processors_;
    if (mirror == Partner::kDevice) processors_ -= kSpare;
    whole_ = processors_ == total;
    chip_ = chip_of_device(device), chip_.processors = processors_;
    across_pcie_ = mirror == Partner::kHost;
  }

  void activate() const override { check_cuda(cudaSetDevice(device_), "choosing a GPU"); }
  int processors() const override { return processors_; }
  int most_processors() const override { return most_processors_; }
  Chip chip() const override { return chip_; }
  bool whole() const override { return whole_; }
  bool shared() const override { return parts_ > 1; }
  bool mirrored() const override { return mirror_ != Partner::kNone; }
  bool across_pcie() const override { return across_pcie_; }

  void copy(void* to, void const* from, int64_t bytes) const override {
    activate();
    check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "copying");
    wait_for(nullptr);
  }
  std::shared_ptr<CUstream_st> stream() const override {
    activate();
    auto const kept = std::make_shared<CopyStream>();
    return {kept, kept->stream()};
  }
  void settle(Stream stream) const override { wait_for(stream); }
  int64_t room() const override {
    activate();
    size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "how much GPU memory is free");
    return static_cast<int64_t>(free) / parts_;
  }
  std::vector<LinkProof> prove_links(Bootstrap& bootstrap, double limit_seconds) override {
    if (parts_ > 1 || mirrored()) return {};
    auto links = flux::prove_links(bootstrap, Nodes(bootstrap.size()), *this, device_, limit_seconds);
    if (auto broken = broken_link(links); !broken.empty())
      throw Error(ErrorKind::kDevice, broken +
                                          "; see `flux doctor`, and use ranks that are processes: they go through "
                                          "NCCL where they can");
    across_pcie_ = cross_pcie(links);
    return links;
  }

  std::shared_ptr<SymmetricMemory> allocate(Bootstrap& bootstrap, int64_t bytes, Use use,
                                            double limit_seconds) override {
    auto played = [](Use use) { return use == Use::kData || use == Use::kPackets; };
    auto make = [&](int rank) {
      bool const host = use == Use::kControl || (played(use) && rank != bootstrap.rank() && mirror_ == Partner::kHost);
      return host ? allocate_pinned(bytes) : allocate(bytes);
    };
    if (mirrored())
      return std::make_shared<MirroredMemory>(bootstrap.rank(), bootstrap.size(), bytes, use == Use::kData, make);
    std::shared_ptr<std::byte> mine;
    std::string failure;
    try {
      mine = make(bootstrap.rank());
    } catch (Error const& error) {
      failure = fmt::format("rank {}: {}", bootstrap.rank(), error.what());
    }
    return std::make_shared<DeviceMemory>(bootstrap, std::move(mine), std::move(failure), device_, limit_seconds);
  }

  std::shared_ptr<std::byte> allocate(int64_t bytes) override {
    activate();
    void* data = nullptr;
    if (cudaMalloc(&data, std::max<int64_t>(bytes, 1)) != cudaSuccess) {
      cudaGetLastError();
      size_t free = 0, total = 0;
      cudaMemGetInfo(&free, &total);
      throw Error(ErrorKind::kDevice, fmt::format("cannot get {} bytes of GPU {}'s memory; {} are free, use fewer rows",
                                                  bytes, device_, free));
    }
    auto memory = owned(data, false);
    clear_now(data, bytes);
    return memory;
  }

 private:
  /// Host memory, zeroed, that kernels and copies reach at its own address.
  std::shared_ptr<std::byte> allocate_pinned(int64_t bytes) {
    activate();
    void* data = nullptr;
    size_t const size = std::max<int64_t>(bytes, 1);
    check_cuda(cudaHostAlloc(&data, size, cudaHostAllocPortable | cudaHostAllocMapped), "pinned host memory");
    std::memset(data, 0, size);
    return owned(data, true);
  }
  std::shared_ptr<std::byte> owned(void* data, bool pinned) const {
    return {static_cast<std::byte*>(data), [late = late_frees_, pinned](std::byte* at) {
              if (gave_up_on_gpu()) return;
              if (late)
                late->add(at, pinned);
              else if (pinned)
                cudaFreeHost(at);
              else
                cudaFree(at);
            }};
  }

  int device_, parts_, processors_ = 0, most_processors_ = 0;
  Chip chip_;
  bool whole_ = false, across_pcie_ = false;
  Partner mirror_;
  std::shared_ptr<LateFrees> late_frees_;  // where the GPU is shared
};

}  // namespace

Chip chip_of_device(int device) {
  auto read = [&](cudaDeviceAttr attribute) {
    int value = 0;
    check_cuda(cudaDeviceGetAttribute(&value, attribute, device), "a GPU's kind");
    return value;
  };
  int const major = read(cudaDevAttrComputeCapabilityMajor), minor = read(cudaDevAttrComputeCapabilityMinor);
  Chip chip;
  chip.processors = read(cudaDevAttrMultiProcessorCount);
  chip.shared_bytes = read(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  chip.fp8 = major > 8 || (major == 8 && minor >= 9);
  [[maybe_unused]] bool const hopper = major == 9 && minor == 0;
#if FLUX_WITH_SM90
  chip.engine = hopper ? EngineKind::kSm90 : EngineKind::kSm80;
#else
  chip.engine = EngineKind::kSm80;
#endif
  char const* const wanted = std::getenv("FLUX_ENGINE");
  std::string_view const word = wanted ? wanted : "";
  if (word == "sm80") chip.engine = EngineKind::kSm80;
  if (!word.empty() && word != "auto" && word != "sm80" && word != "sm90")
    throw Error(ErrorKind::kInvalid, fmt::format("FLUX_ENGINE={} is none of auto, sm90, sm80", word));
  if (word == "sm90" && chip.engine != EngineKind::kSm90)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("FLUX_ENGINE=sm90 needs compute capability 9.0 and a build for it; GPU {} has {}.{}",
                            device, major, minor));
  return chip;
}

std::shared_ptr<Gpu> open_gpu(int device, int parts, Partner mirror) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0, cudaGetLastError();
  if (device >= count)
    throw Error(ErrorKind::kUnsupported, fmt::format("GPU {} was asked for; {} are here", device, count));
  return std::make_shared<CudaGpu>(device, parts, mirror);
}

}  // namespace flux
