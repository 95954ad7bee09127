// The suites of flux bench that run on a GPU.
#include "cli/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "bench/tolerance.h"
#ifdef FLUX_WITH_SM90
#include "bench/gemm/overlap_suite.h"
#include "bench/gemm/result.h"
#include "bench/gemm/suite.h"
#endif

namespace flux::cli {

bool is_gpu_suite(std::string const& suite) {
  constexpr std::array<std::string_view, 5> kSuites = {"core", "extended", "edge", "decode", "ablation"};
  return std::ranges::find(kSuites, suite) != kSuites.end();
}

#ifdef FLUX_WITH_SM90

int bench_gemms(BenchOptions const& o) {
  bench::require_gpu(o.suite);
  bench::GemmSuite suite;
  suite.workloads = o.workload_file().string(), suite.cublaslt = o.cublaslt, suite.rounds = o.common.samples;
  if (!o.tier.empty()) suite.tiers = {o.tier};
  return run_suite(o, bench::gemm_suite(suite), bench::gpu_facts(), bench::gpu_bus_id(),
                   [](ResultRow const& row) { return bench::tolerance(parse_dtype(row.dtype)); });
}

int bench_mirrored(BenchOptions const& o) {
  constexpr int kDecodeSamples = 200;  // the 99th percentile of fewer is the slowest
  bench::require_gpu(o.suite);
  bench::OverlapSuite suite;
  suite.workloads = o.workload_file().string();
  suite.tier = o.suite, suite.only = o.only, suite.cublaslt = o.cublaslt;
  suite.ranks = o.tp, suite.least_m = o.least_m, suite.most_m = o.most_m, suite.timing = o.timing;
  suite.cold = o.cold, suite.budget = o.suite == "core", suite.timeline = o.common.timeline_path;
  suite.rounds = o.suite == "decode" ? std::max(o.common.samples, kDecodeSamples) : o.common.samples;
  suite.partner = o.mirror == "device" ? Partner::kDevice : Partner::kHost;
  suite.plan = o.common.plan(), suite.variant = o.variant;
  std::vector<std::string> notes, complaints;
  suite.note = [&](std::string const& text) { notes.push_back(text); };
  suite.complain = [&](std::string const& text) { complaints.push_back(text); };
  int const code = run_suite(o, bench::overlap_suite(suite), bench::gpu_facts(), bench::gpu_bus_id(), [&](auto& row) {
    // "sm90 fused=yes ...": behind the engine, the plan that this row went by.
    Plan const plan = row.plan ? parse_plan(row.plan->substr(row.plan->find(' ') + 1)) : suite.plan;
    return bench::tolerance(parse_dtype(row.dtype), parse_op(row.op), plan, suite.ranks);
  });
  for (std::string const& text : notes) fmt::print(stderr, "flux: {}\n", text);
  for (std::string const& text : complaints) fmt::print(stderr, "flux: {}\n", text);
  return code == kOk && !complaints.empty() ? kWrongOutput : code;
}

#else

namespace {

int without_kernels() {
  throw Error(ErrorKind::kUnsupported,
              "this build has no GPU kernels; configure with nvcc in PATH, or bench another suite");
}

}  // namespace

int bench_gemms(BenchOptions const&) { return without_kernels(); }
int bench_mirrored(BenchOptions const&) { return without_kernels(); }

#endif

}  // namespace flux::cli
