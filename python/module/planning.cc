// What would be chosen and why, and what this machine has.
#include <nanobind/stl/string.h>

#include "flux/version.h"
#include "plan/candidates.h"
#include "plan/machine.h"
#include "report/result_file.h"
#include "world.h"
#include "world/gpu_report.h"

namespace flux::python {
namespace {

nb::dict to_dict(Candidate const& c) {
  nb::dict told;
  told["plan"] = to_string(c.plan);
  if (c.total_us > 0) told["total_us"] = c.total_us;
  if (!c.out.empty()) told["out"] = c.out;
  if (c.by_libraries) told["by_libraries"] = true;
  return told;
}

nb::dict plan(std::string const& op, int64_t m, int64_t n, int64_t k, int ranks, std::string const& machine,
              std::string const& dtype, bool in_out, bool gated) {
  Problem problem{parse_op(op), m, n, k, ranks, parse_dtype(dtype)};
  problem.layout = in_out ? WeightLayout::kInOut : WeightLayout::kOutIn, problem.gated = gated;
  Ranking ranking;
  {
    nb::gil_scoped_release const free;
    ranking = rank_candidates(problem, find_machine(machine));
  }
  Parts const& parts = ranking.parts;
  double const total = ranking.best().total_us, hidden = parts.none_us - parts.gemm_us;
  nb::dict told;
  told["plan"] = to_string(ranking.best().plan), told["fused"] = ranking.best().plan.fused;
  told["total_us"] = total, told["gemm_us"] = parts.gemm_us, told["comm_us"] = parts.comm_us;
  told["none_us"] = parts.none_us, told["floor_us"] = parts.floor_us();
  told["efficiency"] = hidden > 0 ? nb::object(nb::float_(1 - (total - parts.gemm_us) / hidden)) : nb::none();
  nb::list candidates;
  for (Candidate const& c : ranking.candidates) candidates.append(to_dict(c));
  told["candidates"] = candidates;
  return told;
}

nb::dict facts() {
  UsableGpus const gpus = usable_gpus();
  nb::dict told;
  told["version"] = std::string(version()), told["commit"] = std::string(commit());
  told["gpus"] = gpus.count, told["no_gpus"] = gpus.none;
#ifdef FLUX_WITH_MPI
  told["mpi"] = true;
#else
  told["mpi"] = false;
#endif
  return told;
}

}  // namespace

void bind_planning(nb::module_& module) {
  module.def("plan", &plan, nb::arg("op"), nb::arg("m"), nb::arg("n"), nb::arg("k"), nb::arg("ranks"),
             nb::arg("machine"), nb::arg("dtype"), nb::arg("in_out"), nb::arg("gated"));
  module.def("facts", &facts);
  module.def(
      "write_result",
      [](std::string const& folder, std::string const& text) {
        return write_result(folder, parse_result(text, "these results")).string();
      },
      nb::arg("folder"), nb::arg("text"));
}

}  // namespace flux::python
