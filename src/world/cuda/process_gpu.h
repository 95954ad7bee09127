#pragma once
#include <optional>

#include "world/gpu.h"

namespace flux {

/// How processes reach each other's GPU memory.
enum class Sharing {
  kVmm,   ///< the driver's virtual memory: handles are files, and memory lives until its last user lets go
  kIpc,   ///< CUDA IPC: where the former is not there
  kHost,  ///< not at all: they meet in pinned host memory, which each reaches by its own copy engines
  kNone,  ///< not at all: NCCL carries what they send
};

/// As in gpu.h, by the way `wanted` alone.
std::shared_ptr<Gpu> open_process_gpu(Bootstrap& bootstrap, Nodes const& nodes, int device, double limit_seconds,
                                      std::optional<Sharing> wanted);

}  // namespace flux
