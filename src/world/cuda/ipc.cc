// GPU memory of processes by CUDA IPC, where the driver's virtual memory cannot be shared. Here memory must not be
// freed before every process that opened it has closed it. Nobody waits for that: a block that is let go is kept until
// words in shared memory say that all have closed it, or until the process ends.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "kernel/check.h"
#include "world/cuda/copy_stream.h"
#include "world/cuda/peer_memory.h"
#include "world/together.h"

namespace flux {
namespace {

// CUDA shares whole allocations of this size; smaller ones would show others what lies beside them.
constexpr int64_t kPage = int64_t{2} << 20;

// Blocks of this process that others may still have open.
class Exported {
 public:
  static Exported& all() {
    static auto* const one = new Exported;  // never destroyed: at the end of the process CUDA is gone first
    return *one;
  }
  void keep(void* block, std::shared_ptr<SymmetricMemory> closed, int rank, Nodes const& nodes) {
    std::lock_guard lock(mutex_);
    kept_.push_back({block, std::move(closed), rank, nodes});
  }
  void free_closed() {
    std::lock_guard lock(mutex_);
    std::erase_if(kept_, [](Kept const& k) {
      auto const* const words = reinterpret_cast<Word const*>(k.closed->at(k.rank));
      for (int p : k.nodes.neighbours(k.rank))
        if (p != k.rank && load_acquire(words + p) == 0) return false;
      cudaFree(k.block);
      return true;
    });
  }

 private:
  struct Kept {
    void* block;
    std::shared_ptr<SymmetricMemory> closed;
    int rank;
    Nodes nodes;
  };
  std::mutex mutex_;
  std::vector<Kept> kept_;
};

class IpcMemory final : public SymmetricMemory {
 public:
  IpcMemory(Bootstrap& bootstrap, Nodes const& nodes, int device, int64_t bytes, double limit)
      : device_(device), rank_(bootstrap.rank()), nodes_(nodes) {
    Exported::all().free_closed();
    closed_ = SymmetricMemory::allocate(MemoryKind::kSharedMemory, bootstrap, nodes, kMaxRanks * sizeof(Word), limit);
    try {
      open(bootstrap, (std::max<int64_t>(bytes, 1) + kPage - 1) / kPage * kPage, limit);
    } catch (...) {
      let_go();
      throw;
    }
  }
  ~IpcMemory() override { let_go(); }

 private:
  void open(Bootstrap& bootstrap, int64_t size, double limit) {
    cudaIpcMemHandle_t handle{};
    together(bootstrap, limit, [&] {
      check_cuda(cudaSetDevice(device_), "choosing a GPU");
      void* block = nullptr;
      if (cudaMalloc(&block, size) != cudaSuccess) {
        cudaGetLastError();
        size_t free = 0, total = 0;
        cudaMemGetInfo(&free, &total);
        throw Error(ErrorKind::kDevice,
                    fmt::format("cannot get {} bytes of GPU {}'s memory to share; {} are free, use fewer rows", size,
                                device_, free));
      }
      blocks_.base[rank_] = static_cast<std::byte*>(block);
      clear_now(block, size);
      check_cuda(cudaIpcGetMemHandle(&handle, block), "exporting GPU memory by CUDA IPC");
    });
    auto const handles = bootstrap.all_gather({reinterpret_cast<char const*>(&handle), sizeof handle}, limit);
    together(bootstrap, limit, [&] {
      for (int r : nodes_.neighbours(rank_)) {
        if (r == rank_) continue;
        void* block = nullptr;
        std::memcpy(&handle, handles[r].data(), sizeof handle);
        cudaError_t const result = cudaIpcOpenMemHandle(&block, handle, cudaIpcMemLazyEnablePeerAccess);
        cudaGetLastError();
        if (result != cudaSuccess)
          throw Error(ErrorKind::kDevice, fmt::format("GPU {} cannot reach the memory of rank {} by CUDA IPC: {}",
                                                      device_, r, cudaGetErrorString(result)));
        blocks_.base[r] = static_cast<std::byte*>(block);
      }
    });
  }
  void let_go() {
    if (gave_up_on_gpu()) return;
    cudaSetDevice(device_);
    cudaDeviceSynchronize();  // what is enqueued may still use the blocks; it ends, at the latest at its limit
    for (int r : nodes_.neighbours(rank_)) {
      if (r == rank_) continue;
      if (blocks_.base[r]) cudaIpcCloseMemHandle(blocks_.base[r]);
      store_release(reinterpret_cast<Word*>(closed_->at(r)) + rank_, 1);
    }
    if (blocks_.base[rank_]) Exported::all().keep(blocks_.base[rank_], closed_, rank_, nodes_);
    Exported::all().free_closed();
  }

  int device_, rank_;
  Nodes nodes_;
  std::shared_ptr<SymmetricMemory> closed_;  // at each rank a word a peer: it has closed that rank's block
};

}  // namespace

std::shared_ptr<SymmetricMemory> share_by_ipc(Bootstrap& bootstrap, Nodes const& nodes, int device, int64_t bytes,
                                              double limit_seconds) {
  return std::make_shared<IpcMemory>(bootstrap, nodes, device, bytes, limit_seconds);
}

std::string cannot_share_by_ipc(int device) {
  void* block = nullptr;
  cudaIpcMemHandle_t handle;
  std::string why;
  try {
    check_cuda(cudaSetDevice(device), "choosing a GPU");
    check_cuda(cudaMalloc(&block, kPage), "GPU memory");
    check_cuda(cudaIpcGetMemHandle(&handle, block), "exporting GPU memory by CUDA IPC");
  } catch (Error const& error) {
    why = error.what();
  }
  if (block) cudaFree(block);
  return why;
}

}  // namespace flux
