#pragma once
// Memory that every rank allocates alike and that every rank of its node can reach: one block a rank.
#include <memory>

#include "flux/world.h"
#include "tile/signal.h"
#include "world/nodes.h"

namespace flux {

enum class MemoryKind { kHeap, kSharedMemory };  // ranks are threads of one process; processes of one host

/// Bytes that this machine, or the container's limit, can still give.
int64_t available_bytes();

class SymmetricMemory {
 public:
  /// Collective. Every rank's block has `bytes` bytes, is zeroed and aligned to a page, and stays mapped here until
  /// this object goes, even if its owner died; ranks of other nodes have none here. Throws `Error{kDevice}` naming the
  /// bytes asked for.
  static std::shared_ptr<SymmetricMemory> allocate(MemoryKind kind, Bootstrap& bootstrap, Nodes const& nodes,
                                                   int64_t bytes, double limit_seconds);
  virtual ~SymmetricMemory() = default;

  std::byte* at(int rank) const { return blocks_.at(rank); }
  /// The same block as this rank's GPU sees it, where it is one of host memory.
  virtual std::byte* on_gpu(int rank) const { return at(rank); }
  /// The part of every block that begins at `offset`.
  template <class T>
  Symmetric<T> view(int64_t offset) const {
    Symmetric<T> all;
    for (int r = 0; r < kMaxRanks; ++r)
      if (blocks_.base[r]) all.base[r] = reinterpret_cast<T*>(blocks_.base[r] + offset);
    return all;
  }

 protected:
  Symmetric<std::byte> blocks_;
};

}  // namespace flux
