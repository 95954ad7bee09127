#include "op/tuned_plans.h"

#include <fmt/format.h>

#include <cstdio>

#include "op/tune_operator.h"
#include "world/team.h"

namespace flux {
namespace {

/// `plan` without what says how much it may use, which is no choice.
Plan choices(Plan plan) {
  Plan const usual;
  plan.workers = usual.workers, plan.wide_slots = usual.wide_slots, plan.buffers = usual.buffers;
  plan.spare = usual.spare, plan.lane = usual.lane;
  return plan;
}
bool leaves_open(Plan const& plan) { return choices(plan) == Plan{}; }

bool known(Problem const& p) { return p.m > 0 && p.n > 0 && p.k > 0; }

Machine machine_of(FromRankZero const& said) {
  Machine m;
  m.engine = said.engine, m.processors = said.processors;
  m.link.kind = said.engine == EngineKind::kHost ? LinkKind::kDeclared
                : said.through_host              ? LinkKind::kHost
                : said.across_pcie               ? LinkKind::kPcie
                                                 : LinkKind::kNvlink;
  return m;
}

/// Good for an order of candidates, not for times.
Machine assumed_host() {
  Machine m;
  m.name = "a host", m.source = "assumed", m.engine = EngineKind::kHost, m.processors = 1, m.products = 16;
  m.clock_mhz = m.sustained_mhz = 3000, m.memory_gbps = 20;
  m.link = {LinkKind::kDeclared, 5, 5, 5, 5, 5, 0, 1, 0, 1, 5, 10, 1};
  return m;
}

}  // namespace

PlanTable::PlanTable(Team& team)
    : tune_seconds(team.from_rank_zero().tune_seconds), key_(flux::key(machine_of(team.from_rank_zero()))) {
  bool const one_way = team.gpu() && team.gpu()->nccl();
  if (one_way || team.nodes().count > 1) {  // plans of the table are for one node
    tune_seconds = 0;
    return;
  }
  std::string const& text = team.from_rank_zero().plans;
  if (text.empty()) return;
  try {
    cache_ = PlanCache::parse(text, "rank 0's");
  } catch (Error const& error) {
    if (team.rank() == 0) fmt::print(stderr, "flux: note: {}; going on without tuned plans\n", error.what());
  }
}

Plan PlanTable::plan(Problem const& problem, Plan const& given) const {
  if (tuning || !known(problem) || !leaves_open(given)) return given;
  FoundPlan found = fresh_.find(problem, key_);
  if (found.source != FoundPlan::Source::kTuned) found = cache_.find(problem, key_);
  Plan plan = choices(found.plan);
  plan.workers = given.workers, plan.wide_slots = given.wide_slots, plan.buffers = given.buffers;
  plan.spare = given.spare, plan.lane = given.lane;
  return plan;
}

bool PlanTable::to_tune(Problem const& problem, Plan const& given) const {
  if (tuning || tune_seconds <= 0 || !known(problem) || !leaves_open(given)) return false;
  auto has = [&](PlanCache const& cache) { return cache.find(problem, key_).source == FoundPlan::Source::kTuned; };
  return !has(fresh_) && !has(cache_);
}

Machine PlanTable::machine() const {
  if (auto const known = cache_.machine(key_)) return *known;
  for (Machine const& machine : named_machines())
    if (flux::key(machine) == key_) return machine;
  return assumed_host();
}

PlanTable& plan_table(Team& team) {
  if (!team.plan_table) team.plan_table = std::make_shared<PlanTable>(team);
  return *team.plan_table;
}

Problem problem_of(AllGatherGemm::Shape const& s, int ranks) {
  return {Op::kAllGatherGemm, s.max_m, s.n, s.k, ranks, s.dtype, s.layout, s.gated};
}
Problem problem_of(Op op, GemmReduceScatter::Shape const& s, int ranks) {
  return {op, s.max_m, s.n, s.k, ranks, s.dtype, s.layout, false};
}

Plan plan_for(World& world, Problem const& problem, Plan const& given, bool tunable) {
  PlanTable& table = plan_table(world.team());
  if (tunable && table.to_tune(problem, given)) tune_operator(world, problem, table);
  return table.plan(problem, given);
}

}  // namespace flux
