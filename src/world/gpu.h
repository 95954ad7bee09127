#pragma once
// The GPU of a rank, as the rest of the world sees it: no CUDA header needed. src/world/cuda has the one
// implementation.
#include <memory>

#include "world/symmetric_memory.h"

namespace flux {

class Gpu {
 public:
  virtual ~Gpu() = default;

  /// From here on this thread's CUDA calls mean this GPU.
  virtual void activate() const = 0;
  /// Multiprocessors that this rank's kernels may fill.
  virtual int processors() const = 0;
  /// Whether that is a part of the GPU, shared with other ranks.
  virtual bool shared() const = 0;
  /// Whether the other ranks are played by memory that is not theirs: see World::mirror.
  virtual bool mirrored() const = 0;
  /// Makes host memory (whole pages) reachable by kernels at its own address, for as long as this object lives.
  virtual void reach(void* host, int64_t bytes) = 0;
  /// As SymmetricMemory::allocate, on the ranks' GPUs. Collective.
  virtual std::shared_ptr<SymmetricMemory> allocate(Bootstrap& bootstrap, int64_t bytes, double limit_seconds) = 0;
  /// Memory of this rank alone, zeroed.
  virtual std::shared_ptr<std::byte> allocate(int64_t bytes) = 0;
  /// Host memory of this rank alone, zeroed, reachable by kernels and copies at its own address.
  virtual std::shared_ptr<std::byte> allocate_pinned(int64_t bytes) = 0;
};

/// `parts` ranks share the GPU; or `mirror` says what plays the other ranks' memory. Throws Error{kUnsupported} where
/// there is no such GPU, or no CUDA in this build.
std::shared_ptr<Gpu> open_gpu(int device, int parts, Partner mirror = Partner::kNone);

}  // namespace flux
