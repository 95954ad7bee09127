// Shared memory of the host that GPUs of several processes reach. Control blocks lie there: a kernel that gives up
// tells every rank's host, and looks for what its own host has to say. And where GPUs do not reach each other's memory,
// all that ranks share does.
#include <fmt/format.h>

#include <cstdlib>
#include <map>

#include "kernel/check.h"
#include "world/cuda/peer_memory.h"
#include "world/together.h"

namespace flux {
namespace {

constexpr size_t kPage = 4096;

// Host memory that this process's GPU may use, as long as this object lives.
class Registration {
 public:
  Registration(void* block, size_t bytes) : block_(block) {
    if (cudaHostRegister(block, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped) != cudaSuccess) {
      char const* const why = cudaGetErrorString(cudaGetLastError());
      throw Error(ErrorKind::kDevice,
                  fmt::format("the driver does not register {} bytes of shared host memory with the GPU ({}); some "
                              "containers and limits on locked memory (ulimit -l) forbid it",
                              bytes, why));
    }
    try {
      void* seen = nullptr;
      check_cuda(cudaHostGetDevicePointer(&seen, block, 0), "the GPU's address of shared host memory");
      seen_ = static_cast<std::byte*>(seen);
    } catch (...) {
      cudaHostUnregister(block_);
      throw;
    }
  }
  Registration(Registration const&) = delete;
  ~Registration() { cudaHostUnregister(block_); }
  std::byte* seen() const { return seen_; }

 private:
  void* block_;
  std::byte* seen_ = nullptr;
};

class RegisteredMemory final : public SymmetricMemory {
 public:
  RegisteredMemory(Bootstrap& bootstrap, Nodes const& nodes, int device, int64_t bytes, ViewedBy viewed_by,
                   double limit)
      : device_(device), host_(SymmetricMemory::allocate(MemoryKind::kSharedMemory, bootstrap, nodes, bytes, limit)) {
    blocks_ = host_->view<std::byte>(0);
    together(bootstrap, limit, [&] {
      check_cuda(cudaSetDevice(device), "choosing a GPU");
      size_t const whole = (static_cast<size_t>(bytes) + kPage - 1) / kPage * kPage;
      for (int r : nodes.neighbours(bootstrap.rank()))
        registered_[r] = std::make_unique<Registration>(blocks_.at(r), whole);
    });
    if (viewed_by == ViewedBy::kHost) return;
    for (int r : nodes.neighbours(bootstrap.rank())) blocks_.base[r] = on_gpu(r);
  }
  // Kernels that are under way look here until they end, at the latest at their limit.
  ~RegisteredMemory() override {
    if (gave_up_on_gpu()) {
      for (auto& [rank, registration] : registered_) static_cast<void>(registration.release());
      new std::shared_ptr<SymmetricMemory>(host_);  // stays mapped to the end of the process
      return;
    }
    if (cudaSetDevice(device_) == cudaSuccess) cudaDeviceSynchronize();
  }
  std::byte* on_gpu(int rank) const override { return registered_.at(rank)->seen(); }

 private:
  int device_;
  std::shared_ptr<SymmetricMemory> host_;
  std::map<int, std::unique_ptr<Registration>> registered_;  // by rank
};

}  // namespace

std::string cannot_register() {
  std::unique_ptr<void, void (*)(void*)> const page(std::aligned_alloc(kPage, kPage), std::free);
  try {
    check_cuda(cudaSetDevice(0), "choosing a GPU");
    Registration const trial(page.get(), kPage);
    return {};
  } catch (Error const& error) {
    return error.what();
  }
}

std::shared_ptr<SymmetricMemory> share_registered(Bootstrap& bootstrap, Nodes const& nodes, int device, int64_t bytes,
                                                  ViewedBy viewed_by, double limit_seconds) {
  return std::make_shared<RegisteredMemory>(bootstrap, nodes, device, bytes, viewed_by, limit_seconds);
}

}  // namespace flux
