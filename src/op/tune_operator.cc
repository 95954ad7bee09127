#include "op/tune_operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "world/team.h"

namespace flux {
namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

}  // namespace

double slowest_us(World& world, double mine_us) {
  double slowest = 0;
  for (std::string const& us : world.all_gather(fmt::format("{}", mine_us))) slowest = std::max(slowest, std::stod(us));
  return slowest;
}

std::function<bool()> until(World& world, double seconds) {
  return [&world, seconds, begin = Clock::now()] {
    return world.all_gather(us_since(begin) < 1e6 * seconds ? "on" : "end")[0] == "on";
  };
}

CallTiming::CallTiming(World& world, Problem const& problem) : trials_(world, problem) {
  if (world.on_gpu()) stream_ = world.team().gpu()->stream();
}

std::optional<double> CallTiming::time_us(Plan const& plan) {
  if (!trials_.has(plan)) return {};
  World& world = trials_.world();
  int const calls = world.on_gpu() ? 10 : 1;
  world.barrier();
  auto const begin = Clock::now();
  for (int i = 0; i < calls; ++i) trials_.run(plan, stream_.get());
  if (world.on_gpu()) world.team().gpu()->settle(stream_.get());
  return slowest_us(world, us_since(begin) / calls);
}

void tune_operator(World& world, Problem const& problem, PlanTable& table) {
  TuneOptions options;
  options.go_on = until(world, table.tune_seconds);
  try {
    Ranking const ranking = rank_candidates(problem, table.machine());
    CallTiming timing(world, problem);
    Tuned const tuned = tune(ranking, timing, options);
    TunedPlan const best{table.key(), problem, tuned.best().candidate.plan, tuned.best().median_us()};
    table.put(best);
    if (world.rank() != 0) return;
    std::string const path = plan_file(world.team().options());
    std::string const note = path.empty() ? "" : PlanCache::add(path, {best});
    if (!note.empty()) fmt::print(stderr, "flux: note: {}\n", note);
  } catch (Error const& error) {
    if (error.kind() != ErrorKind::kUnsupported) throw;
    if (world.rank() == 0) fmt::print(stderr, "flux: note: not tuned: {}\n", error.what());
  }
}

}  // namespace flux
