#pragma once
// An operator on GPUs timed as calls that are enqueued one behind the other, fused and not.
#include <functional>

#include "cli/command.h"

namespace flux::cli {

struct GpuTimes {
  bench::Times fused, none;  // of one call, its enqueueing included where that takes longer
};

/// `run(fused)` enqueues a call, `settle` waits for all of them. Collective.
GpuTimes timed_on_gpu(World& world, std::function<void(bool fused)> const& run, std::function<void()> const& settle,
                      int samples);

nlohmann::json to_json(GpuTimes const& times);
void print_gpu_times(GpuTimes const& times);

/// Whether ranks share one GPU: what can be said of the link then, or nothing.
std::string about_link(World& world);
/// Whether the ranks' calls can be timed: processes on one GPU are served in turn.
bool can_be_timed(World& world);

}  // namespace flux::cli
