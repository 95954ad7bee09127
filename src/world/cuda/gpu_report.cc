#include "world/gpu_report.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include "kernel/check.h"
#include "world/cuda/link_prover.h"
#include "world/cuda/nccl.h"
#include "world/cuda/numa.h"
#include "world/cuda/peer_memory.h"

namespace flux {
namespace {

/// How many GPUs are visible; if none, `none` says why.
int visible_gpus(std::string& none) {
  int count = 0, driver = 0;
  cudaError_t const result = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (result == cudaSuccess && count > 0) return count;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    none = "no NVIDIA driver";
  else
    none = result == cudaSuccess ? "no GPU visible" : std::string("no GPU visible: ") + cudaGetErrorString(result);
  return 0;
}

GpuFacts facts_of(int index) {
  cudaDeviceProp properties;
  check_cuda(cudaGetDeviceProperties(&properties, index), "a GPU's properties");
  return {index,
          properties.name,
          properties.major * 10 + properties.minor,
          properties.multiProcessorCount,
          static_cast<int64_t>(properties.totalGlobalMem),
          cannot_share_by_vmm(index),
          cannot_share_by_ipc(index),
          numa_nodes().at(index)};
}

// What a trial shows; nothing: it works.
std::string try_pair(GpuPair const& pair, double limit_seconds) {
  if (gave_up_on_gpu()) return "not tried: an earlier trial did not end";
  ProofPart* part = nullptr;
  std::string failure;
  try {
    check_cuda(cudaSetDevice(pair.to), "choosing a GPU");
    check_cuda(cudaMalloc(reinterpret_cast<void**>(&part), sizeof *part), "memory for the proof of links");
    check_cuda(cudaSetDevice(pair.from), "choosing a GPU");
    cudaError_t const enabled = cudaDeviceEnablePeerAccess(pair.to, 0);
    cudaGetLastError();
    if (enabled != cudaErrorPeerAccessAlreadyEnabled) check_cuda(enabled, "peer access");
    Word const seed = 0x5eed0000u + static_cast<Word>(pair.from * 256 + pair.to);
    failure = LinkProver(pair.from, limit_seconds).write(part, seed);
    if (failure.empty()) failure = LinkProver(pair.to, limit_seconds).read(part, seed);
  } catch (Error const& error) {
    failure = error.what();
  }
  if (part && !gave_up_on_gpu()) cudaFree(part);
  return failure;
}

GpuPair examine(int from, int to, double limit_seconds) {
  GpuPair pair{from, to, false, false, way_to(from, uuid_of(to)), false, {}};
  int access = 0, atomics = 0;
  check_cuda(cudaDeviceCanAccessPeer(&access, from, to), "peer access");
  check_cuda(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, from, to), "a link");
  pair.access = access != 0, pair.atomics = atomics != 0;
  pair.reason = access ? try_pair(pair, limit_seconds) : "the driver gives no access";
  pair.works = pair.reason.empty();
  return pair;
}

}  // namespace

GpuReport report_gpus(double limit_seconds) {
  GpuReport report;
  report.no_nccl = no_nccl();
  int const count = visible_gpus(report.none);
  if (count == 0) return report;
  report.no_host = cannot_register();
  try {
    for (int i = 0; i < count; ++i) report.gpus.push_back(facts_of(i));
    for (int from = 0; from < count; ++from)
      for (int to = 0; to < count; ++to)
        if (from != to) report.pairs.push_back(examine(from, to, limit_seconds));
  } catch (Error const& error) {
    report.none = error.what();
  }
  return report;
}

UsableGpus usable_gpus() {
#if FLUX_WITH_KERNELS
  std::string none;
  int const count = visible_gpus(none);
  if (count == 0) return {0, "there is " + none};
  for (int i = 0; i < count; ++i) {
    int major = 0, minor = 0;
    check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, i), "a GPU's kind");
    check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, i), "a GPU's kind");
    if (major < 8)
      return {0, fmt::format("GPU {} has compute capability {}.{} and kernels are for 8.0 and later; "
                             "CUDA_VISIBLE_DEVICES hides GPUs",
                             i, major, minor)};
  }
  return {count, {}};
#else
  return {0, "this build has no GPU kernels"};
#endif
}

}  // namespace flux
