#include "plan/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "flux/error.h"

namespace flux {

Tuned tune(Ranking const& ranking, PlanTiming& timing, TuneOptions const& options) {
  Tuned tuned;
  bool apart = false;  // one of those that do not fuse is always timed: never slower than not fusing
  for (Candidate const& c : ranking.candidates) {
    if (!c.chosen_from()) continue;
    bool const first_apart = !c.plan.fused && !apart;
    if (tuned.timed.size() < options.candidates || first_apart) tuned.timed.push_back({c, {}}), apart |= !c.plan.fused;
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < tuned.timed.size(); ++i) {  // the first time loads kernels and touches memory
    if (timing.time_us(tuned.timed[i].candidate.plan)) order.push_back(i);
    options.tick();
  }
  std::mt19937 random(1);  // the same order on every rank
  for (; tuned.rounds < options.rounds && (tuned.rounds == 0 || options.go_on()); ++tuned.rounds) {
    // In a fixed order a GPU that grows warm would punish the later ones.
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    for (size_t i : order) {
      if (auto const us = timing.time_us(tuned.timed[i].candidate.plan)) tuned.timed[i].us.push_back(*us);
      options.tick();
    }
  }
  for (TimedPlan& plan : tuned.timed) std::ranges::sort(plan.us);
  std::ranges::stable_sort(tuned.timed, [](TimedPlan const& a, TimedPlan const& b) {
    if (a.us.empty() || b.us.empty()) return !a.us.empty() && b.us.empty();
    return a.median_us() < b.median_us();
  });
  if (tuned.timed.empty() || tuned.best().us.empty())
    throw Error(ErrorKind::kUnsupported, fmt::format("none of the {} best candidates for {} runs here",
                                                     tuned.timed.size(), to_string(ranking.problem)));
  return tuned;
}

}  // namespace flux
