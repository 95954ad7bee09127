#pragma once
// The scenario list of the host engine, as GPUs take it.
#include <vector>

#include "engine/tile_row.h"
#include "op/scenario.h"

namespace flux::test {

/// Whether GPUs can do it by this engine.
bool on_gpu(Scenario const& s, EngineKind engine);
/// All that GPUs can do by this engine, with 16-bit operands, widths in units of 8 and tiles of the engine's table.
std::vector<Scenario> gpu_scenarios(EngineKind engine = EngineKind::kSm90);
/// Those that ranks can do which meet in host memory, by what copies there: no blocks, relays or loads.
std::vector<Scenario> scenarios_in_host_memory(EngineKind engine = EngineKind::kSm90);
/// Those that ranks of several nodes can do, and many tiles, several to a block.
std::vector<Scenario> scenarios_over_nodes(int nodes, EngineKind engine = EngineKind::kSm90);
/// `s` as the `number`-th of such a list.
Scenario for_gpu(Scenario s, int number, EngineKind engine);

}  // namespace flux::test
