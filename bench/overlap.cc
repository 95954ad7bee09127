#include "bench/overlap.h"

#include <fmt/format.h>

#include <cstdlib>

namespace flux::bench {

Overlap measure_overlap(World& world, Subject const& subject, int rounds, std::function<void()> const& tick) {
  auto times = measure(world,
                       {{"fused", [&] { subject.run(true); }},
                        {"none", [&] { subject.run(false); }},
                        {"gemm", subject.gemm},
                        {"comm", subject.comm}},
                       rounds, tick);
  return {times["fused"], times["none"], times["gemm"], times["comm"]};
}

Link link_for_ratio(World& world, Subject const& subject, double ratio, double latency_us) {
  auto const times = measure(world, {{"gemm", subject.gemm}}, 3);
  double const gbps = static_cast<double>(subject.sent_bytes) / (ratio * times.at("gemm").median() * 1e3);
  auto const all = world.all_gather(fmt::format("{}", gbps));
  return {std::strtod(all[0].c_str(), nullptr), latency_us};  // rank 0's word counts: all declare the same link
}

}  // namespace flux::bench
