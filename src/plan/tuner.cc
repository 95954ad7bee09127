#include "plan/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <tuple>

#include "flux/error.h"

namespace flux {
namespace {

// How bytes travel and in which pieces: what the model is least sure of.
bool travel_alike(Plan const& a, Plan const& b) {
  auto way = [](Plan const& p) {
    return std::tuple(p.fused, p.transport, p.path, p.route, p.shots, p.copy_blocks > 0, p.comm_rows > 0);
  };
  return way(a) == way(b);
}

// Plans that come to the same call are simulated to the same time, to the last bit.
bool same_call(Candidate const& a, Candidate const& b) {
  return a.total_us == b.total_us && a.waited_us == b.waited_us && a.stalled_us == b.stalled_us;
}

}  // namespace

std::vector<Candidate> worth_timing(Ranking const& ranking, size_t most) {
  constexpr std::ptrdiff_t kAlike = 3, kMany = 1 << 20;
  constexpr double kClose = 1.1, kAny = 1e9;
  std::vector<Candidate> always, list;
  bool apart = false;
  double least_us = kAny;
  for (Candidate const& c : ranking.candidates) {
    if (c.chosen_from()) least_us = std::min(least_us, c.total_us);
    bool const first_apart = !c.plan.fused && !apart;
    if (c.chosen_from() && (first_apart || c.plan == Plan{})) always.push_back(c), apart |= !c.plan.fused;
  }
  auto take = [&](double within, bool only_new, std::ptrdiff_t alike) {
    for (Candidate const& c : ranking.candidates) {
      auto among = [&](auto const& like) {
        return std::ranges::any_of(list, like) || std::ranges::any_of(always, like);
      };
      if (list.size() == most || !c.chosen_from() || c.total_us > within * least_us) continue;
      if (among([&](Candidate const& other) { return other.plan == c.plan; })) continue;
      if (only_new && among([&](Candidate const& other) { return same_call(other, c); })) continue;
      if (std::ranges::count_if(list, [&](Candidate const& other) { return travel_alike(other.plan, c.plan); }) < alike)
        list.push_back(c);
    }
  };
  take(kClose, true, kAlike);
  take(kAny, true, kMany);  // where there are not so many that differ
  take(kAny, false, kMany);
  list.insert(list.end(), always.begin(), always.end());
  return list;
}

Tuned tune(Ranking const& ranking, PlanTiming& timing, TuneOptions const& options) {
  Tuned tuned;
  for (Candidate const& c : worth_timing(ranking, options.candidates)) tuned.timed.push_back({c, {}});
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
