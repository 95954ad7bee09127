#pragma once
// Operands where a world's operators take them: on the host, or copied to the rank's GPU.
#include <memory>
#include <vector>

#include "flux/tensor.h"
#include "flux/world.h"

namespace flux::bench {

class Placed {
 public:
  explicit Placed(World& world);

  /// `host`, contiguous, itself; or a copy of it on the GPU, as long as this object lives.
  Tensor place(Tensor const& host);
  /// From one of the two to the other, behind all calls so far on `stream()`.
  void copy(Tensor const& from, Tensor const& to) const;
  /// What the calls go on: none on the host.
  Stream stream() const { return stream_.get(); }
  /// Waits until all calls so far are over.
  void settle() const;

 private:
  World& world_;
  std::shared_ptr<CUstream_st> stream_;
  std::vector<std::shared_ptr<std::byte>> memory_;
};

}  // namespace flux::bench
