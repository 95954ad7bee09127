#pragma once
// The GPU of a rank, as the rest of the world sees it: no CUDA header needed. src/world/cuda has the one
// implementation.
#include <memory>

#include "engine/tile_row.h"
#include "world/symmetric_memory.h"

namespace flux {

/// What a block is for, and so where it lies: control blocks in host memory, words and data on the GPU; in a mirror
/// the others' data and packets where Partner says, the data filled with what they might send. Where ranks do not reach
/// each other's memory abort words are each rank's own, and words and data lie in host memory if all reach that.
enum class Use { kControl, kAbort, kWords, kData, kPackets };

class Nccl;  // src/world/cuda/nccl.h

class Gpu {
 public:
  virtual ~Gpu() = default;

  /// From here on this thread's CUDA calls mean this GPU.
  virtual void activate() const = 0;
  /// Multiprocessors that this rank's kernels may fill.
  virtual int processors() const = 0;
  /// Multiprocessors of kernels that need none left free: all, or this rank's part.
  virtual int most_processors() const { return processors(); }
  /// Which engine multiplies, and what its tiles are chosen by: the same on every rank.
  virtual Chip chip() const = 0;
  /// Whether `processors` are all it has.
  virtual bool whole() const = 0;
  /// Whether other ranks, threads of this process, have a part of it.
  virtual bool shared() const = 0;
  /// Whether the other ranks are played by memory that is not theirs: see World::mirror.
  virtual bool mirrored() const = 0;
  /// Whether ranks reach each other across PCIe, as their links were proved; otherwise by NVLink, or on the same GPU.
  virtual bool across_pcie() const = 0;
  /// Whether they reach each other in host memory alone, which is across PCIe too.
  virtual bool through_host() const { return false; }
  /// Whether ranks are on several nodes, between which NCCL carries rows beside kernels that wait for them.
  virtual bool spans_nodes() const { return false; }
  /// Collective: a block a rank, zeroed, that the kernels and copies of all ranks of its node reach.
  virtual std::shared_ptr<SymmetricMemory> allocate(Bootstrap& bootstrap, int64_t bytes, Use use,
                                                    double limit_seconds) = 0;
  /// Memory of this rank alone, zeroed.
  virtual std::shared_ptr<std::byte> allocate(int64_t bytes) = 0;
  /// Bytes of its memory that are free for this rank; ranks on one GPU have equal parts.
  virtual int64_t room() const = 0;
  /// Copies, now, from or to memory of the host or of this GPU.
  virtual void copy(void* to, void const* from, int64_t bytes) const = 0;
  /// A stream, as long as somebody has it.
  virtual std::shared_ptr<CUstream_st> stream() const = 0;
  /// Waits until all of the stream is done.
  virtual void settle(Stream stream) const = 0;
  /// What carries rows where ranks do not reach each other's memory; null: they do.
  virtual Nccl* nccl() const { return nullptr; }
  /// Collective: NCCL beside links that work, for who compares with it; opened once. Throws the same Error on every
  /// rank where it does not serve.
  virtual Nccl& nccl_beside(Bootstrap&, double /*limit_seconds*/) {
    throw Error(ErrorKind::kUnsupported, "NCCL is for ranks that are processes");
  }
  /// Collective: what carries rows along this rank's rail for operators of a lane, whose calls come in the same order
  /// on every rank. It takes at most `blocks` multiprocessors.
  virtual Nccl& rail(Bootstrap&, int /*lane*/, int /*blocks*/, double /*limit_seconds*/) {
    throw Error(ErrorKind::kInternal, "there are no rails on one node");
  }
  /// What keeps NCCL from its end, such as a rank that does not come, and the end of that: from the world's watcher.
  virtual std::string trouble(double /*limit_seconds*/) { return {}; }
  virtual void end() {}
  /// Collective: tries every link before it is used. Where one does not work, ranks meet in host memory, or NCCL is
  /// opened, or every rank throws the same Error.
  virtual std::vector<LinkProof> prove_links(Bootstrap&, double /*limit_seconds*/) { return {}; }
};

/// What a GPU is to the engines. The environment's FLUX_ENGINE, sm90 or sm80, names another engine than the best one;
/// throws Error{kUnsupported} where that does not run on it, kInvalid for any other word.
Chip chip_of_device(int device);

/// `parts` ranks share the GPU; or `mirror` says what plays the other ranks' memory. Throws Error{kUnsupported} where
/// there is no such GPU, or no CUDA in this build.
std::shared_ptr<Gpu> open_gpu(int device, int parts, Partner mirror = Partner::kNone);

/// Collective: GPU `device`, or by rank, of a rank that is a process. Ranks of a node share memory in the way that all
/// of them can, or as the environment's FLUX_PEERS says: auto, host (in host memory) or nccl, the same on every rank.
std::shared_ptr<Gpu> open_process_gpu(Bootstrap& bootstrap, Nodes const& nodes, int device, double limit_seconds);

}  // namespace flux
