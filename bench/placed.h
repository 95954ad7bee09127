#pragma once
// Operands where a world's operators take them: on the host, or copied to the rank's GPU.
#include <memory>
#include <vector>

#include "flux/tensor.h"
#include "flux/world.h"

namespace flux::bench {

class Placed {
 public:
  explicit Placed(World& world) : world_(world) {}

  /// `host`, contiguous, itself; or a copy of it on the GPU, as long as this object lives.
  Tensor place(Tensor const& host);
  /// From one of the two to the other, behind all calls so far on the default stream.
  void copy(Tensor const& from, Tensor const& to) const;

 private:
  World& world_;
  std::vector<std::shared_ptr<std::byte>> memory_;
};

}  // namespace flux::bench
