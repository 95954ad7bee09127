#pragma once
// Methods timed interleaved: every round runs each of them once, in a new order, all ranks together. A round's time is
// the slowest rank's.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "flux/world.h"

namespace flux::bench {

struct Method {
  std::string name;
  std::function<void()> run;
};

/// Microseconds over the rounds of one method.
struct Times {
  std::vector<double> us;  // sorted
  double quantile(double q) const;
  double median() const { return quantile(0.5); }
};

/// Collective. One warm-up of each, then `rounds` rounds. `tick` is called after each run, on every rank.
std::map<std::string, Times> measure(
    World& world, std::vector<Method> const& methods, int rounds, std::function<void()> const& tick = [] {});

}  // namespace flux::bench
