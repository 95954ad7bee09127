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

/// The measures of DESIGN: how much of the communication a method hides.
struct Overlap {
  double total_us = 0, none_us = 0, gemm_us = 0, comm_us = 0;
  double ect_us() const { return total_us - gemm_us; }
  /// 1: all hidden, 0: no gain over one after the other. No meaning where there is nothing to hide.
  double efficiency() const { return 1 - ect_us() / (none_us - gemm_us); }
  double floor_us() const { return gemm_us > comm_us ? gemm_us : comm_us; }
};

}  // namespace flux::bench
