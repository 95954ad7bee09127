#pragma once
// The plan that an operator goes by: the one it is given, or where that leaves all choices open, what rank 0 has in its
// table of tuned plans. The table is the same on every rank, so the plan is.
#include "flux/op.h"
#include "plan/plan_cache.h"

namespace flux {

class PlanTable {
 public:
  explicit PlanTable(Team& team);

  /// `given`, or a tuned plan with `given`'s resources (workers, slots, buffers, spare, lane). A function of the table,
  /// the problem and `given` alone.
  Plan plan(Problem const& problem, Plan const& given) const;
  /// Whether an operator is to be tuned before it is made: it was asked for, `given` leaves the choice, and this very
  /// problem is not in the table.
  bool to_tune(Problem const& problem, Plan const& given) const;
  /// What was tuned here, from now on in the table of every rank.
  void put(TunedPlan const& plan) { fresh_.put(plan); }

  std::string const& key() const { return key_; }  ///< of rank 0's machine
  /// Its numbers: of the file, or of a named machine with that key; for a host nobody measured, assumed ones.
  Machine machine() const;
  double tune_seconds = 0;
  bool tuning = false;  ///< operators are made to be timed, by the plans they are given

 private:
  std::string key_;
  PlanCache cache_;
  PlanCache fresh_;  // only for the very problems: a memory() that was told stays true
};

/// The table of this rank's world.
PlanTable& plan_table(Team& team);

/// What is planned, of an operator of this shape on so many ranks. Sizes that are not known are 0.
Problem problem_of(AllGatherGemm::Shape const& shape, int ranks);
Problem problem_of(Op op, GemmReduceScatter::Shape const& shape, int ranks);

/// Before an operator is made. Collective. Tunes where WorldOptions::tune_seconds asks for it and memory is not yet
/// given (`tunable`).
Plan plan_for(World& world, Problem const& problem, Plan const& given, bool tunable);

}  // namespace flux
