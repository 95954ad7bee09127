#pragma once
// Methods on one GPU, interleaved: every round times each of them once, in a new order, so that a GPU that slows down
// as it warms up slows down all of them.
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace flux::bench {

struct GpuMethod {
  std::string name;
  std::function<void()> run;  // enqueues on the default stream
  std::vector<double> us;     // of each round
  double quantile(double q) const;
};

/// `rounds` rounds, each method `repeat` times in a row within a sample.
void measure(std::vector<GpuMethod>& methods, int rounds, int repeat, std::mt19937& random);

}  // namespace flux::bench
