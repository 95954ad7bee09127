#pragma once
// The scenario list of the host engine, as GPUs take it.
#include <vector>

#include "op/scenario.h"

namespace flux::test {

/// All that GPUs can do, with 16-bit operands, widths in units of 8 and tiles of the engine's table.
std::vector<Scenario> gpu_scenarios();
/// `s` as the `number`-th of such a list.
Scenario for_gpu(Scenario s, int number);

}  // namespace flux::test
