#pragma once
// flux simulate nodes: where tensor parallelism over two nodes pays, and where it does not.
#include "cli/command.h"

namespace flux::cli {

void add_simulate_nodes(CLI::App& simulate, Action& action);

}  // namespace flux::cli
