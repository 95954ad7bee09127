#include "bench/measure.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "bench/slowest.h"

namespace flux::bench {

double Times::quantile(double q) const {
  if (us.empty()) return 0;
  double const at = q * static_cast<double>(us.size() - 1);
  size_t const low = static_cast<size_t>(at), high = std::min(low + 1, us.size() - 1);
  return us[low] + (at - static_cast<double>(low)) * (us[high] - us[low]);
}

std::map<std::string, Times> measure(World& world, std::vector<Method> const& methods, int rounds,
                                     std::function<void()> const& tick) {
  using Clock = std::chrono::steady_clock;
  std::mt19937 random(1);  // the same order on every rank
  std::vector<size_t> order(methods.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<std::vector<double>> mine(methods.size());
  for (int round = -1; round < rounds; ++round) {  // round -1 warms up
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i : order) {
      world.barrier();
      auto const start = Clock::now();
      methods[i].run();
      double const us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
      if (round >= 0) mine[i].push_back(us);
      tick();
    }
  }
  mine = slowest(world, mine);
  std::map<std::string, Times> result;
  for (size_t i = 0; i < methods.size(); ++i) {
    std::sort(mine[i].begin(), mine[i].end());
    result[methods[i].name].us = std::move(mine[i]);
  }
  return result;
}

}  // namespace flux::bench
