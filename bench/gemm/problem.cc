#include "bench/gemm/problem.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "bench/workloads.h"

namespace flux::bench {

std::string GemmProblem::describe() const {
  return workload + " m=" + std::to_string(m) + " tp=" + std::to_string(tp) + " (" + std::to_string(m) + "x" +
         std::to_string(rank_n()) + "x" + std::to_string(rank_k()) + ")";
}

namespace {

GemmProblem problem_of(Workload const& w, std::string const& tier) {
  auto const& whole = w.problem;
  return {w.name,     tier,   std::string(name(whole.op)), whole.m, whole.n, whole.k, w.tp, whole.dtype, whole.layout,
          w.epilogue, w.plans};
}

}  // namespace

std::vector<GemmProblem> read_operators(std::string const& path, std::string const& tier, int ranks) {
  std::vector<GemmProblem> problems;
  for (Workload const& w : read_workloads(path, tier)) {
    if (size_of(w.problem.dtype) != 2)
      throw Error(ErrorKind::kInvalid, "workload " + w.name + " is of " + std::string(name(w.problem.dtype)) +
                                           "; the suites of operators on GPUs take bf16 and fp16");
    if (w.tp == ranks) problems.push_back(problem_of(w, tier));
  }
  return problems;
}

std::vector<GemmProblem> read_problems(std::string const& path, std::vector<std::string> const& tiers,
                                       std::vector<int> const& ranks, int64_t least_m) {
  std::vector<GemmProblem> problems;
  std::set<std::tuple<int64_t, int64_t, int64_t, DType, WeightLayout, std::string>> seen;
  for (auto const& tier : tiers)
    for (Workload const& w : read_workloads(path, tier)) {
      auto const& whole = w.problem;
      if (whole.op == Op::kGemmAllReduce || whole.m < least_m) continue;
      if (std::find(ranks.begin(), ranks.end(), w.tp) == ranks.end()) continue;
      GemmProblem p = problem_of(w, tier);
      auto add = [&] {
        if (seen.insert({p.m, p.rank_n(), p.rank_k(), p.dtype, p.layout, p.epilogue}).second) problems.push_back(p);
      };
      add();
      if (std::exchange(p.layout, WeightLayout::kOutIn) == WeightLayout::kInOut) add();
    }
  return problems;
}

}  // namespace flux::bench
