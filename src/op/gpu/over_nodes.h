#pragma once
// What goes between nodes in calls on GPUs: along the rails, while kernels of the call multiply and add.
#include "op/gather.h"
#include "op/gpu/channel.h"

namespace flux {

/// Enqueues the gather of a call over several nodes: our shard to the node and along the rails, and what comes along
/// them handed on, by `blocks` blocks or, 0, by copies. Copies and rail are forked from the caller's stream, and to be
/// joined. Our own rows lie one behind the other.
void gather_over_nodes(GpuChannel& channel, Gather const& gather, Watch const& watch, int blocks, DType dtype);

}  // namespace flux
