#pragma once
// Runs the units of a suite into a growing result file, with the time left on the terminal.
#include <functional>
#include <string>
#include <vector>

#include "bench/unit.h"
#include "report/growing_result.h"

namespace flux::bench {

/// Measures each unit that the file does not have yet. `stop` is asked before each; returns whether all are measured.
bool run_units(std::string const& title, std::vector<Unit> const& units, GrowingResult& results,
               std::function<bool()> const& stop);

}  // namespace flux::bench
