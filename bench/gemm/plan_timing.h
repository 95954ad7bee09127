#pragma once
// Plans timed as CUDA graphs, as the suites time them: for flux tune in a mirror.
#include <memory>

#include "flux/world.h"
#include "plan/problem.h"
#include "plan/tuner.h"

namespace flux::bench {

/// Of a world whose rank is alone in this process. Collective.
std::unique_ptr<PlanTiming> graph_timing_of_plans(World& world, Problem const& problem);

}  // namespace flux::bench
