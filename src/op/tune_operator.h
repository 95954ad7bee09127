#pragma once
// An operator that is about to be made, tuned first: the best of the simulated plans are timed by the ranks that will
// run it.
#include "op/tuned_plans.h"

namespace flux {

/// Collective. Puts the fastest plan into the table, and rank 0 into its file; nothing where no candidate runs here.
void tune_operator(World& world, Problem const& problem, PlanTable& table);

}  // namespace flux
