#pragma once
// Runs the units of a suite into a growing result file, with the time left on the terminal.
#include <functional>
#include <string>
#include <vector>

#include "bench/unit.h"
#include "report/growing_result.h"

namespace flux::bench {

/// Measures each unit that the file does not have yet. `stop` is asked before each; returns whether all are measured.
/// `tell`: which unit is measured now, kNoUnit behind the last, for those who measure with us.
inline constexpr int kNoUnit = -1;
bool run_units(
    std::string const& title, std::vector<Unit> const& units, GrowingResult& results, std::function<bool()> const& stop,
    std::function<void(int unit)> const& tell = [](int) {});

/// What they do: measure each unit that they are told, until there is none.
void follow_units(std::vector<Unit> const& units, std::function<int()> const& told);

}  // namespace flux::bench
