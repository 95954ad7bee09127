#include "bench/overlap.h"

#include <fmt/format.h>

#include <cstdlib>

namespace flux::bench {

namespace {

// The fastest of the GEMMs by its median, and its name.
std::pair<std::string, Times> fastest(std::vector<Method> const& gemms, std::map<std::string, Times> const& times) {
  std::string best = gemms.at(0).name;
  for (Method const& gemm : gemms)
    if (times.at(gemm.name).median() < times.at(best).median()) best = gemm.name;
  return {best, times.at(best)};
}

}  // namespace

int overlap_runs(Subject const& subject, int rounds) {
  return static_cast<int>(3 + subject.gemms.size()) * (rounds + 1);
}

Overlap measure_overlap(World& world, Subject const& subject, int rounds, std::function<void()> const& tick) {
  std::vector<Method> methods = subject.gemms;
  methods.push_back({"fused", [&] { subject.run(true); }});
  methods.push_back({"none", [&] { subject.run(false); }});
  methods.push_back({"comm", subject.comm});
  auto times = measure(world, methods, rounds, tick);
  auto const [by, gemm] = fastest(subject.gemms, times);
  return {times["fused"], times["none"], gemm, times["comm"], by};
}

Link link_for_ratio(World& world, Subject const& subject, double ratio, double latency_us) {
  auto const [by, gemm] = fastest(subject.gemms, measure(world, subject.gemms, 3));
  double const gbps = static_cast<double>(subject.sent_bytes) / (ratio * gemm.median() * 1e3);
  auto const all = world.all_gather(fmt::format("{}", gbps));
  return {std::strtod(all[0].c_str(), nullptr), latency_us};  // rank 0's word counts: all declare the same link
}

}  // namespace flux::bench
