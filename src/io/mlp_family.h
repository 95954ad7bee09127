#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "flux/problem.h"
#include "io/checkpoint.h"

namespace flux {

/// How a model family names the tensors of layer N: "<stack>N<up>.weight", with ".bias" beside it where it has one.
struct MlpFamily {
  std::string_view name, up, gate, down;
  bool fused;  ///< `up` holds gate and up, gate rows first
  WeightLayout layout;
  Activation activation;
};

/// A layer with an MLP that a checkpoint holds.
struct MlpLayer {
  MlpFamily const* family;
  std::string stack;  ///< "model.layers."
  int64_t number;
};

/// The layer `number` among the tensors whose names begin with `prefix`. Throws Error{kInvalid} if there is no MLP of a
/// known family, no such layer (naming those that are), or more than one.
MlpLayer find_layer(Checkpoint const& checkpoint, std::string_view prefix, int64_t number);

}  // namespace flux
