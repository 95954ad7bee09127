#pragma once
// The GPUs of this machine and the links between them, for `flux doctor`.
#include <cstdint>
#include <string>
#include <vector>

namespace flux {

struct GpuFacts {
  int index = 0;
  std::string name;
  int capability = 0;  ///< 90 for compute capability 9.0
  int processors = 0;
  int64_t memory_bytes = 0;
  std::string no_vmm, no_ipc;  ///< why processes cannot share its memory in that way; empty: they can
  int node = -1;               ///< of which NUMA node; -1: the system does not say
};

struct GpuPair {
  int from = 0, to = 0;
  bool access = false;   ///< what the driver says: `from` may use the memory of `to`
  bool atomics = false;  ///< what the driver says: with native atomics
  std::string way;       ///< `NVLink` or `PCIe`
  bool works = false;    ///< what a trial has shown
  std::string reason;    ///< why not
};

struct GpuReport {
  std::string none;  ///< why there are none
  std::vector<GpuFacts> gpus;
  std::vector<GpuPair> pairs;  ///< each pair, both directions
  std::string no_host;         ///< why processes whose GPUs do not reach each other cannot meet in host memory
  std::string no_nccl;         ///< nor go through NCCL; empty: they can
};

/// What operators can run on: all visible GPUs, if this build has kernels for each of them.
struct UsableGpus {
  int count = 0;
  std::string none;  ///< why there are none: a sentence's end
};
UsableGpus usable_gpus();

/// Tries all links, each bounded by `limit_seconds`.
GpuReport report_gpus(double limit_seconds);

}  // namespace flux
