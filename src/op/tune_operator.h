#pragma once
// Plans timed by the ranks that will run them; and an operator that is about to be made, tuned first.
#include "op/trials.h"
#include "op/tuned_plans.h"
#include "plan/tuner.h"

namespace flux {

/// Times calls that are enqueued one behind the other, as a program makes them; on the host one call.
class CallTiming final : public PlanTiming {
 public:
  CallTiming(World& world, Problem const& problem);
  std::optional<double> time_us(Plan const& plan) override;

 private:
  Trials trials_;
  std::shared_ptr<CUstream_st> stream_;
};

/// The slowest rank's time. Collective.
double slowest_us(World& world, double mine_us);

/// Says whether `seconds` from now on have not yet passed by rank 0's clock, the same to every rank. Collective.
std::function<bool()> until(World& world, double seconds);

/// Collective. Puts the fastest plan into the table, and rank 0 into its file; nothing where no candidate runs here.
void tune_operator(World& world, Problem const& problem, PlanTable& table);

}  // namespace flux
