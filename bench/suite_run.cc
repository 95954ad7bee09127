#include "bench/suite_run.h"

#include <algorithm>

#include "report/progress.h"

namespace flux::bench {

bool run_units(std::string const& title, std::vector<Unit> const& units, GrowingResult& results,
               std::function<bool()> const& stop, std::function<void(int)> const& tell) {
  std::vector<Unit const*> left;
  for (Unit const& unit : units)
    if (!results.has(unit.problem)) left.push_back(&unit);
  auto const weight = [](Unit const& unit) { return std::max<int64_t>(static_cast<int64_t>(unit.expected_us), 1); };
  int64_t all = 0;
  for (Unit const* unit : left) all += weight(*unit);
  Progress progress(title, all);  // of what is left: what an earlier run measured took none of this one's time
  for (Unit const* unit : left) {
    if (stop()) {
      tell(kNoUnit);
      return false;
    }
    tell(static_cast<int>(unit - units.data()));
    results.add(unit->measure());
    progress.advance(weight(*unit));
  }
  tell(kNoUnit);
  return true;
}

void follow_units(std::vector<Unit> const& units, std::function<int()> const& told) {
  for (int unit = told(); unit != kNoUnit; unit = told()) units.at(static_cast<size_t>(unit)).measure();
}

}  // namespace flux::bench
