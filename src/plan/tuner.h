#pragma once
// The best few of the simulated candidates, timed on the machine at hand.
#include <functional>
#include <optional>
#include <vector>

#include "plan/candidates.h"

namespace flux {

/// Runs a plan once and says how long it took. Where several ranks tune together each calls it with the same plans in
/// the same order, and all are told the slowest rank's time.
class PlanTiming {
 public:
  virtual ~PlanTiming() = default;
  /// Microseconds; nothing where this plan cannot run here.
  virtual std::optional<double> time_us(Plan const& plan) = 0;
};

/// What is worth the time: the operator's own rules and the best that does not fuse, always; then the best by
/// simulation, no more than a few that travel alike, and one of those that the model cannot tell apart. `most` and
/// those two.
std::vector<Candidate> worth_timing(Ranking const& ranking, size_t most);

struct TuneOptions {
  size_t candidates = 8;  ///< timed, beside the two that always are: worth_timing
  int rounds = 7;         ///< each times every candidate once, in a new order
  /// Asked before each round but the first; the same answer on every rank. A budget of time ends here.
  std::function<bool()> go_on = [] { return true; };
  std::function<void()> tick = [] {};  ///< after each timing: candidates x rounds at most, and a warm-up each
};

struct TimedPlan {
  Candidate candidate;
  std::vector<double> us;  ///< sorted; empty: it cannot run here
  double median_us() const { return us.empty() ? 0 : us[us.size() / 2]; }
};

struct Tuned {
  std::vector<TimedPlan> timed;  ///< the fastest first, then those that cannot run
  int rounds = 0;                ///< that there was time for
  TimedPlan const& best() const { return timed.front(); }
};

/// Throws Error{kUnsupported} where no candidate runs.
Tuned tune(Ranking const& ranking, PlanTiming& timing, TuneOptions const& options);

}  // namespace flux
