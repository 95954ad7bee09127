#include "cli/gpu_times.h"

#include <fmt/format.h>

#include <algorithm>

namespace flux::cli {

GpuTimes timed_on_gpu(World& world, std::function<void(bool fused)> const& run, std::function<void()> const& settle,
                      int samples) {
  constexpr int kCalls = 10;  // in a row: the host enqueues the next while one runs
  auto calls = [&](bool fused) {
    for (int i = 0; i < kCalls; ++i) run(fused);
    settle();
  };
  auto times =
      bench::measure(world, {{"fused", [&] { calls(true); }}, {"none", [&] { calls(false); }}}, std::max(samples, 1));
  for (auto& [method, of] : times)
    for (double& us : of.us) us /= kCalls;
  return {times["fused"], times["none"]};
}

nlohmann::json to_json(GpuTimes const& t) {
  return {{"total_us", t.fused.median()},
          {"p10_us", t.fused.quantile(0.1)},
          {"p90_us", t.fused.quantile(0.9)},
          {"none_us", t.none.median()}};
}

void print_gpu_times(GpuTimes const& t) {
  fmt::print("  one after the other       {:10.3f} ms   fused=no\n", t.none.median() / 1e3);
  fmt::print("  fused                     {:10.3f} ms   {:.2f} x as fast\n", t.fused.median() / 1e3,
             t.none.median() / t.fused.median());
}

bool can_be_timed(World& world) {
  return std::ranges::none_of(world.links(), [](LinkProof const& link) { return link.way == "same GPU"; });
}

std::string about_link(World& world) {
  if (!world.on_gpu()) return {};
  if (!can_be_timed(world)) return "ranks share a GPU, which serves them in turn: checked, and not to be timed";
  if (world.kind() == "shared gpu") return "ranks share one GPU: these are no times of a real link between GPUs";
  return {};
}

}  // namespace flux::cli
