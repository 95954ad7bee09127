#pragma once
// Every plan that may serve a problem, what each would cost, and why the others are out.
#include <functional>
#include <string>
#include <vector>

#include "plan/simulate.h"

namespace flux {

struct Candidate {
  Plan plan;
  std::string out;            ///< why it cannot be chosen; empty: it can
  bool by_libraries = false;  ///< no plan: their GEMM, then their collective
  double total_us = 0;        ///< simulated; 0: it was not
  double waited_us = 0, stalled_us = 0, behind_us = 0;
  bool chosen_from() const { return out.empty(); }
};

struct Ranking {
  Problem problem;
  Parts parts;
  std::vector<Candidate> candidates;  ///< the fastest first, then those that are out
  Candidate const& best() const { return candidates.front(); }
};

/// `kQuick`: every way of travel with the tile that an operator would take on its own, nothing varied.
enum class Effort { kAll, kQuick };

/// Simulates the candidates. All knobs are tried: tile, transport, communication tile, route and shots together, then
/// raster, order, slices of k and store instruction on the best of those. "Do not fuse" is among them. Deterministic.
/// Throws Error{kInvalid} for a problem that makes no sense, Error{kUnsupported} where nothing serves it.
Ranking rank_candidates(Problem const& problem, Machine const& machine, Effort effort = Effort::kAll);

/// The same of these plans alone.
Ranking rank_plans(Problem const& problem, Machine const& machine, std::vector<Plan> const& plans);

/// The words of a plan that differ from the defaults: what is worth reading of it.
std::string short_line(Plan const& plan);

}  // namespace flux
