#pragma once
// Times of the GPU at hand and of its link, for a Machine of it.
#include <memory>

#include "flux/world.h"
#include "plan/machine.h"

namespace flux::bench {

/// Collective, the same on every rank: of a world of GPUs with its first two ranks' link, or of a mirror with the link
/// to pinned host memory. What is not measured (a call's own time, GEMM and traffic beside each other) is a like
/// machine's. Throws Error{kDevice} where times make no sense.
Machine measure_gpu(World& world);

}  // namespace flux::bench
