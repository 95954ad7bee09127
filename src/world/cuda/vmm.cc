// GPU memory of processes by the driver's virtual memory management: each rank exports its block as a file, hands it to
// the others over a socket, and maps theirs. The driver counts the users of a block, so ranks let go in any order, and
// a rank that dies takes nothing away from those that still copy into its memory.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "kernel/check.h"
#include "world/cuda/copy_stream.h"
#include "world/cuda/driver.h"
#include "world/cuda/peer_memory.h"
#include "world/file_exchange.h"

namespace flux {
namespace {

// Blocks are whole pages of the GPU: 2 MiB, or more where a GPU says so.
constexpr size_t kPage = size_t{2} << 20;

CUmemAllocationProp properties_on(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return properties;
}

size_t whole_pages(int64_t bytes, int device) {
  static auto const granularity_of =
      driver_function<decltype(&cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
  size_t granularity = 0;
  CUmemAllocationProp const properties = properties_on(device);
  check_driver(granularity_of(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "the GPU's page size");
  size_t const page = std::max(granularity, kPage);
  return (static_cast<size_t>(std::max<int64_t>(bytes, 1)) + page - 1) / page * page;
}

// Memory of a GPU, here or exported by another process.
class Handle {
 public:
  static Handle make(int device, size_t size) {
    static auto const create = driver_function<decltype(&cuMemCreate)>("cuMemCreate");
    Handle made;
    CUmemAllocationProp const properties = properties_on(device);
    check_driver(create(&made.handle_, size, &properties, 0), "making GPU memory");
    made.held_ = true;
    return made;
  }
  static Handle of(File const& file) {
    static auto const take =
        driver_function<decltype(&cuMemImportFromShareableHandle)>("cuMemImportFromShareableHandle");
    Handle made;
    auto* const descriptor = reinterpret_cast<void*>(static_cast<uintptr_t>(file.descriptor()));
    check_driver(take(&made.handle_, descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                 "taking another process's GPU memory");
    made.held_ = true;
    return made;
  }
  Handle() = default;
  Handle(Handle&& other) noexcept : handle_(other.handle_), held_(std::exchange(other.held_, false)) {}
  ~Handle() {
    static auto const release = driver_function<decltype(&cuMemRelease)>("cuMemRelease");
    if (held_) release(handle_);
  }
  File exported() const {
    static auto const export_file =
        driver_function<decltype(&cuMemExportToShareableHandle)>("cuMemExportToShareableHandle");
    int descriptor = -1;
    check_driver(export_file(&descriptor, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                 "exporting GPU memory as a file");
    return File(descriptor);
  }
  CUmemGenericAllocationHandle get() const { return handle_; }

 private:
  CUmemGenericAllocationHandle handle_ = 0;
  bool held_ = false;
};

// An address range of this process with such memory behind it, which kernels and copies of `device` may use.
class Mapping {
 public:
  Mapping(int device, size_t size, Handle const& memory) : size_(size) {
    static auto const reserve = driver_function<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
    static auto const map = driver_function<decltype(&cuMemMap)>("cuMemMap");
    static auto const allow = driver_function<decltype(&cuMemSetAccess)>("cuMemSetAccess");
    try {
      check_driver(reserve(&at_, size, 0, 0, 0), "reserving addresses for GPU memory");
      check_driver(map(at_, size, 0, memory.get(), 0), "mapping GPU memory");
      mapped_ = true;
      CUmemAccessDesc access{};
      access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      check_driver(allow(at_, size, &access, 1), "access to GPU memory");
    } catch (...) {
      undo();
      throw;
    }
  }
  Mapping(Mapping const&) = delete;
  ~Mapping() { undo(); }
  std::byte* at() const { return reinterpret_cast<std::byte*>(at_); }

 private:
  void undo() {
    static auto const unmap = driver_function<decltype(&cuMemUnmap)>("cuMemUnmap");
    static auto const unreserve = driver_function<decltype(&cuMemAddressFree)>("cuMemAddressFree");
    if (mapped_) unmap(at_, size_);
    if (at_) unreserve(at_, size_);
  }
  CUdeviceptr at_ = 0;
  size_t size_;
  bool mapped_ = false;
};

class VmmMemory final : public SymmetricMemory {
 public:
  VmmMemory(Bootstrap& bootstrap, Nodes const& nodes, int device, int64_t bytes, double limit) : device_(device) {
    auto map = [&](int rank, size_t size, Handle const& memory) {
      blocks_.base[rank] = mappings_.emplace_back(std::make_unique<Mapping>(device, size, memory))->at();
    };
    auto make = [&] {
      check_cuda(cudaSetDevice(device), "choosing a GPU");
      size_t const size = whole_pages(bytes, device);
      try {
        Handle const memory = Handle::make(device, size);
        map(bootstrap.rank(), size, memory);
        clear_now(blocks_.base[bootstrap.rank()], static_cast<int64_t>(size));
        return memory.exported();
      } catch (Error const& error) {
        size_t free = 0, total = 0;
        cudaMemGetInfo(&free, &total);
        throw Error(ErrorKind::kDevice,
                    fmt::format("cannot get {} bytes of GPU {}'s memory to share; {} are free, use fewer rows ({})",
                                size, device, free, error.what()));
      }
    };
    share_files(bootstrap, nodes, limit, make, [&](int rank, File const& file) {
      try {
        map(rank, whole_pages(bytes, device), Handle::of(file));
      } catch (Error const& error) {
        throw Error(ErrorKind::kDevice,
                    fmt::format("GPU {} cannot reach the memory of rank {}: {}", device, rank, error.what()));
      }
    });
  }
  // What is enqueued may still read and write here. It ends, at the latest at the limit of its waits.
  ~VmmMemory() override {
    if (gave_up_on_gpu()) {
      for (auto& mapping : mappings_) static_cast<void>(mapping.release());
      return;
    }
    if (cudaSetDevice(device_) == cudaSuccess) cudaDeviceSynchronize();
  }

 private:
  int device_;
  std::vector<std::unique_ptr<Mapping>> mappings_;
};

std::atomic<bool> given_up{false};

}  // namespace

void give_up_on_gpu() { given_up = true; }
bool gave_up_on_gpu() { return given_up; }

std::shared_ptr<SymmetricMemory> share_by_vmm(Bootstrap& bootstrap, Nodes const& nodes, int device, int64_t bytes,
                                              double limit_seconds) {
  return std::make_shared<VmmMemory>(bootstrap, nodes, device, bytes, limit_seconds);
}

std::string cannot_share_by_vmm(int device) {
  try {
    check_cuda(cudaSetDevice(device), "choosing a GPU");
    size_t const size = whole_pages(1, device);
    Handle const memory = Handle::make(device, size);
    Mapping const mapping(device, size, Handle::of(memory.exported()));
    return {};
  } catch (Error const& error) {
    return error.what();
  }
}

}  // namespace flux
