#include "bench/gemm/overlap_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/gemm/overlap_problem.h"
#include "bench/gemm/result.h"

namespace flux::bench {
namespace {

/// Roughly: buffers and trials, then every sample of some eight methods.
double expected_us(GemmProblem const& p, OverlapSuite const& options) {
  constexpr double kSetUp = 6e5, kFlopsPerUs = 7e8, kBytesPerUs = 5e4;
  double const columns = static_cast<double>(p.op == "ag_gemm" ? p.k : p.n);
  double const gemm = 2. * static_cast<double>(p.m * p.rank_n()) * static_cast<double>(p.rank_k()) / kFlopsPerUs;
  double const comm = 2. * static_cast<double>(p.m) * columns / kBytesPerUs;
  double const methods = 8 + static_cast<double>(p.plans.size());
  double const settings = (options.timing.empty() ? 2 : 1) * (options.cold ? 2 : 1);
  return kSetUp + methods * (10 * comm + settings * (options.rounds + 2) * (gemm + comm));
}

}  // namespace

std::string OverlapSuite::link() const {
  if (!world) return partner == Partner::kHost ? "pcie" : "device";
  auto const goes = [&](std::string_view way) {
    return std::ranges::any_of(world->links(), [&](LinkProof const& proof) { return proof.way == way; });
  };
  return goes("PCIe") ? "pcie" : goes("same GPU") ? "device" : "nvlink";  // the slowest of them
}

std::vector<Unit> overlap_suite(OverlapSuite const& options) {
  struct Shared {
    CublasLt cublas;
    std::mt19937 random;
    OverlapSuite options;
  };
  auto problems = read_operators(options.workloads, options.tier, options.ranks);
  std::erase_if(problems, [&](auto const& p) {
    return p.m < options.least_m || p.m > options.most_m || p.workload.find(options.only) == std::string::npos;
  });
  if (problems.empty())
    throw Error(ErrorKind::kInvalid, fmt::format("no workload of tier {} for {} ranks has '{}' in its name",
                                                 options.tier, options.ranks, options.only));
  std::shared_ptr<Shared> const shared(new Shared{CublasLt(options.cublaslt), std::mt19937(7), options});
  std::vector<Unit> units;
  for (GemmProblem const& p : problems)
    units.push_back({problem_row(p), expected_us(p, options),
                     [shared, p] { return overlap_rows(p, shared->options, shared->cublas, shared->random); }});
  return units;
}

}  // namespace flux::bench
