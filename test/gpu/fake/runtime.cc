#include "gpu/fake/runtime.h"

#include <cuda.h>
#include <cuda_runtime.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <vector>

#include "kernel/prove.h"

namespace flux::test {
namespace {

constexpr size_t kMost = size_t{1} << 32;  // bytes of the GPU's memory

std::map<std::string, int>& live() {
  static std::map<std::string, int> counts;
  return counts;
}

int memory_file(size_t bytes) {
  int const file = memfd_create("fake gpu", MFD_CLOEXEC);
  return file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0 ? file : -1;
}
void* map_file(void* at, size_t bytes, int file, int protection) {
  return mmap(at, bytes, protection, MAP_SHARED | (at ? MAP_FIXED : 0), file, 0);
}

}  // namespace

bool fails(std::string const& name) {
  static std::map<std::string, int> calls;
  int const call = calls[name]++;
  char const *const faults = std::getenv("FLUX_TEST_FAULT"), *const rank = std::getenv("FLUX_RANK");
  if (!faults || !rank) return false;
  std::istringstream words(faults);
  for (std::string fault; words >> fault;)
    for (std::string const& r : {std::string("*"), std::string(rank)})
      for (std::string const& n : {std::string("*"), std::to_string(call)})
        if (fault == r + ":" + name + ":" + n) return true;
  return false;
}

std::string left_on_fake_gpu() {
  std::string list;
  for (auto const& [what, count] : live())
    if (count != 0) list += fmt::format("{}{} {}", list.empty() ? "" : ", ", what, count);
  return list;
}

namespace {

struct Events {
  std::atomic<int64_t> recorded{0}, over{0};
  std::atomic<bool> late{false}, captured{false};
};
Events& events() {
  static Events all;
  return all;
}

}  // namespace

void hold_fake_gpu() { events().late = true; }
void let_fake_gpu_go() { events().late = false, events().over = events().recorded.load(); }
void capture_on_fake_gpu(bool captured) { events().captured = captured; }

// ---- the driver's virtual memory ----

namespace {

void* pages(CUdeviceptr at) { return reinterpret_cast<void*>(at); }

CUresult granularity(size_t* bytes, CUmemAllocationProp const*, CUmemAllocationGranularity_flags) {
  *bytes = size_t{2} << 20;
  return CUDA_SUCCESS;
}
CUresult create(CUmemGenericAllocationHandle* handle, size_t size, CUmemAllocationProp const*, unsigned long long) {
  if (size > kMost || fails("cuMemCreate")) return CUDA_ERROR_OUT_OF_MEMORY;
  ++live()["handles"], *handle = static_cast<CUmemGenericAllocationHandle>(memory_file(size));
  return CUDA_SUCCESS;
}
CUresult release(CUmemGenericAllocationHandle handle) {
  --live()["handles"];
  return close(static_cast<int>(handle)) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult export_file(void* file, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType, unsigned long long) {
  if (fails("cuMemExportToShareableHandle")) return CUDA_ERROR_NOT_SUPPORTED;
  *static_cast<int*>(file) = fcntl(static_cast<int>(handle), F_DUPFD_CLOEXEC, 0);
  return CUDA_SUCCESS;
}
CUresult import_file(CUmemGenericAllocationHandle* handle, void* file, CUmemAllocationHandleType) {
  if (fails("cuMemImportFromShareableHandle")) return CUDA_ERROR_NOT_PERMITTED;
  int const copy = fcntl(static_cast<int>(reinterpret_cast<intptr_t>(file)), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return CUDA_ERROR_INVALID_VALUE;
  ++live()["handles"], *handle = static_cast<CUmemGenericAllocationHandle>(copy);
  return CUDA_SUCCESS;
}
CUresult reserve(CUdeviceptr* at, size_t size, size_t, CUdeviceptr, unsigned long long) {
  if (fails("cuMemAddressReserve")) return CUDA_ERROR_OUT_OF_MEMORY;
  ++live()["ranges"];
  *at =
      reinterpret_cast<CUdeviceptr>(mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  return CUDA_SUCCESS;
}
CUresult map(CUdeviceptr at, size_t size, size_t, CUmemGenericAllocationHandle handle, unsigned long long) {
  if (fails("cuMemMap")) return CUDA_ERROR_OUT_OF_MEMORY;
  ++live()["maps"];
  bool const mapped = map_file(pages(at), size, static_cast<int>(handle), PROT_NONE) != MAP_FAILED;
  return mapped ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult allow(CUdeviceptr at, size_t size, CUmemAccessDesc const*, size_t) {
  if (fails("cuMemSetAccess")) return CUDA_ERROR_NOT_PERMITTED;
  return mprotect(pages(at), size, PROT_READ | PROT_WRITE) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult unmap(CUdeviceptr at, size_t size) {
  --live()["maps"];
  mmap(pages(at), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  return CUDA_SUCCESS;
}
CUresult unreserve(CUdeviceptr at, size_t size) {
  --live()["ranges"];
  return munmap(pages(at), size) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult name_of(CUresult, char const** name) {
  *name = "CUDA_ERROR_PLANTED";
  return CUDA_SUCCESS;
}
CUresult write_word(CUstream, CUdeviceptr word, cuuint32_t value, unsigned) {
  store_release(static_cast<Word*>(pages(word)), value);
  return CUDA_SUCCESS;
}
// What it waits for has been enqueued before: protocol, rule 3.
CUresult wait_word(CUstream, CUdeviceptr word, cuuint32_t value, unsigned) {
  auto const is_set = [&] { return load_acquire(static_cast<Word*>(pages(word))) == value; };
  if (!is_set()) run_gemms();
  return is_set() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult fill_words(CUdeviceptr words, unsigned value, size_t count, CUstream) {
  std::fill_n(static_cast<Word*>(pages(words)), count, value);
  return CUDA_SUCCESS;
}

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

struct Block {
  int32_t process, file;
  size_t size;
};
std::map<void*, Block>& blocks() {
  static std::map<void*, Block> all;
  return all;
}
std::map<void*, size_t>& opened() {
  static std::map<void*, size_t> all;
  return all;
}

}  // namespace
}  // namespace flux::test

// ---- the runtime ----

using namespace flux::test;

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(char const* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  static std::map<std::string, void*> const all = {
      {"cuMemGetAllocationGranularity", address(granularity)},
      {"cuMemCreate", address(create)},
      {"cuMemRelease", address(release)},
      {"cuMemExportToShareableHandle", address(export_file)},
      {"cuMemImportFromShareableHandle", address(import_file)},
      {"cuMemAddressReserve", address(reserve)},
      {"cuMemMap", address(map)},
      {"cuMemSetAccess", address(allow)},
      {"cuMemUnmap", address(unmap)},
      {"cuMemAddressFree", address(unreserve)},
      {"cuGetErrorName", address(name_of)},
      {"cuStreamWriteValue32", address(write_word)},
      {"cuStreamWaitValue32", address(wait_word)},
      {"cuMemsetD32Async", address(fill_words)},
  };
  auto const found = all.find(name);
  *result = found == all.end() ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  if (found != all.end()) *function = found->second;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  char const* const gpus = std::getenv("FLUX_TEST_GPUS");
  *count = gpus ? std::atoi(gpus) : 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  std::strcpy(properties->name, "fake");
  properties->uuid.bytes[0] = static_cast<char>(200 + device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr asked, int) {
  bool const consumer = getenv("FLUX_TEST_CONSUMER");  // compute capability 8.6
  *value = asked == cudaDevAttrComputeCapabilityMajor         ? (consumer ? 8 : 9)
           : asked == cudaDevAttrComputeCapabilityMinor       ? (consumer ? 6 : 0)
           : asked == cudaDevAttrMaxSharedMemoryPerBlockOptin ? (consumer ? 99 : 227) * 1024
                                                              : 132;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) {
  *value = fails("pcie") ? 0 : 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char*, int, int) { return cudaErrorNotSupported; }
cudaError_t cudaDeviceCanAccessPeer(int* access, int, int) {
  *access = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
char const* cudaGetErrorString(cudaError_t) { return "planted"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() {
  land();
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** block, size_t size) {
  if (size > kMost || fails("cudaMalloc")) return cudaErrorMemoryAllocation;
  int const file = memory_file(size);
  *block = map_file(nullptr, size, file, PROT_READ | PROT_WRITE);
  blocks()[*block] = {getpid(), file, size}, ++live()["mallocs"];
  return cudaSuccess;
}
cudaError_t cudaFree(void* block) {
  land();
  auto const found = blocks().find(block);
  if (!block || found == blocks().end()) return block ? cudaErrorInvalidValue : cudaSuccess;
  close(found->second.file), munmap(block, found->second.size);
  blocks().erase(found), --live()["mallocs"];
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = kMost;
  return cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* block) {
  if (fails("cudaIpcGetMemHandle")) return cudaErrorNotSupported;
  std::memcpy(handle, &blocks().at(block), sizeof(Block));
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void** at, cudaIpcMemHandle_t handle, unsigned) {
  if (fails("cudaIpcOpenMemHandle")) return cudaErrorMapBufferObjectFailed;
  Block block;
  std::memcpy(&block, &handle, sizeof block);
  int const file = open(fmt::format("/proc/{}/fd/{}", block.process, block.file).c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return cudaErrorInvalidValue;
  *at = map_file(nullptr, block.size, file, PROT_READ | PROT_WRITE);
  close(file);
  opened()[*at] = block.size, ++live()["opened"];
  return cudaSuccess;
}
cudaError_t cudaIpcCloseMemHandle(void* at) {
  munmap(at, opened().at(at));
  opened().erase(at), --live()["opened"];
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** block, size_t size, unsigned) {
  *block = std::malloc(size), ++live()["pinned"];
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* block) {
  live()["pinned"] -= block != nullptr;
  std::free(block);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* block, size_t, unsigned) {
  if (fails("cudaHostRegister") || reinterpret_cast<uintptr_t>(block) % 4096 != 0) return cudaErrorNotSupported;
  ++live()["registered"];
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* block) {
  --live()["registered"];
  return *static_cast<char volatile*>(block) == -1 ? cudaErrorUnknown : cudaSuccess;  // still mapped
}
cudaError_t cudaHostGetDevicePointer(void** seen, void* block, unsigned) {
  *seen = block;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(new int(0)), ++live()["streams"];
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete reinterpret_cast<int*>(stream), --live()["streams"];
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) { return fails("stuck") ? cudaErrorNotReady : cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (!stream) land();
  run_gemms();
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new int64_t(0)), ++live()["events"];
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<int64_t*>(event), --live()["events"];
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return *reinterpret_cast<int64_t*>(event) <= events().over ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  *ms = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = events().captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  run_gemms(stream);
  *reinterpret_cast<int64_t*>(event) = ++events().recorded;
  if (!events().late) events().over = events().recorded.load();
  return cudaSuccess;
}
}

// ---- the kernels of src/kernel/prove.cu ----

namespace flux {

void enqueue_pattern(Word* to, int64_t count, Word seed, Word* word, Word value, CUstream_st*) {
  for (int64_t i = 0; i < count; ++i) to[i] = pattern(seed, i);
  store_release(word, value);
}

void enqueue_check(Word const* from, int64_t count, Word seed, Word const* word, Word value, Word* wrong,
                   CUstream_st*) {
  *wrong = load_acquire(word) == value ? 0 : 2;
  for (int64_t i = 0; i < count; ++i)
    if (from[i] != pattern(seed, i)) *wrong = std::max<Word>(*wrong, 1);
}

}  // namespace flux
