#pragma once
// A machine out of what was measured on it.
#include <cstdint>

#include "plan/machine.h"

namespace flux {

/// Times things on the machine at hand, one after another, medians in microseconds. The host and each kind of GPU has
/// one of its own; a fake one has a test.
class MachineProbe {
 public:
  virtual ~MachineProbe() = default;
  /// m x n x k on one rank by the engine's own choice of tiles. `busy`: after GEMMs have run for seconds.
  virtual double gemm_us(int64_t m, int64_t n, int64_t k, bool busy) = 0;
  /// A copy of `bytes` within one rank's memory.
  virtual double copy_here_us(int64_t bytes) = 0;
  /// `count` copies of `bytes` each to (or from) a peer on one copy engine, while as many come the other way; `words`:
  /// a word is set behind each.
  virtual double copies_us(int count, int64_t bytes, bool pull, bool words) = 0;
  /// `bytes` to (or from) a peer by stores (loads) of blocks of a kernel, while as many come the other way.
  virtual double kernel_us(int64_t bytes, bool load) = 0;
  /// From setting a word at a peer to its answer.
  virtual double round_trip_us() = 0;
  /// A reduce-scatter in which each rank sends `bytes`, by the collective library; 0: there is none.
  virtual double collective_us(int64_t bytes) = 0;
};

/// Fits the numbers of `kind`, of which name, engine, processors, products and the link's kind are given. Throws
/// Error{kDevice} where times make no sense.
Machine measured_machine(MachineProbe& probe, Machine kind);

}  // namespace flux
