// The suites of flux bench that run on a GPU.
#include "cli/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>

#include "bench/tolerance.h"
#ifdef FLUX_WITH_SM90
#include "bench/gemm/overlap_suite.h"
#include "bench/gemm/result.h"
#include "bench/gemm/suite.h"
#include "world/cuda/nccl.h"
#include "world/gpu_report.h"
#include "world/team.h"
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
  if (!o.dtype.empty()) suite.dtype = parse_dtype(o.dtype);
  if (suite.dtype && size_of(*suite.dtype) > 2)
    throw Error(ErrorKind::kInvalid, fmt::format("--dtype {}: GPUs multiply bf16, fp16, int8 and fp8", o.dtype));
  return run_suite(o, bench::gemm_suite(suite), bench::gpu_facts(), bench::gpu_bus_id(),
                   [](ResultRow const& row) { return bench::tolerance(parse_dtype(row.dtype)); });
}

namespace {

constexpr int kMirroredRanks = 8;

/// By `world`'s ranks, or none: in a mirror.
int bench_overlap(BenchOptions const& o, World* world, Nccl* nccl, std::vector<std::string> notes) {
  constexpr int kDecodeSamples = 200;  // the 99th percentile of fewer is the slowest
  bool const quick = world && shares_a_gpu(*world);
  bench::OverlapSuite suite;
  suite.world = world, suite.nccl = nccl;
  suite.workloads = o.workload_file().string();
  suite.tier = o.suite, suite.only = o.only, suite.cublaslt = o.cublaslt;
  suite.ranks = world      ? world->size()
                : o.tp > 0 ? o.tp
                           : kMirroredRanks,
  suite.least_m = o.least_m, suite.most_m = o.most_m, suite.timing = o.timing;
  suite.cold = o.cold, suite.budget = o.suite == "core", suite.timeline = o.common.timeline_path;
  suite.rounds = o.suite == "decode" && !quick ? std::max(o.common.samples, kDecodeSamples) : o.common.samples;
  suite.partner = o.mirror == "device" ? Partner::kDevice : Partner::kHost;
  suite.plan = o.common.plan(), suite.variant = o.variant;
  std::vector<std::string> complaints;
  suite.note = [&](std::string const& text) { notes.push_back(text); };
  suite.complain = [&](std::string const& text) {
    if (!quick) complaints.push_back(text);
  };
  auto const tolerated = [&](ResultRow const& row) {
    // "sm90 fused=yes ...": behind the engine, the plan that this row went by. Baselines may round at each addition.
    Plan const plan = parse_plan(row.plan ? row.plan->substr(row.plan->find(' ') + 1) : "route=ring");
    return bench::tolerance(parse_dtype(row.dtype), parse_op(row.op), plan, suite.ranks);
  };
  MachineFacts facts = bench::gpu_facts();
  if (world) facts.link = suite.link();
  if (nccl) facts.nccl = nccl_version();
  int const code = run_suite(o, bench::overlap_suite(suite), facts, bench::gpu_bus_id(), tolerated, world);
  if (world && world->rank() != 0) return code;
  for (std::string const& text : notes) fmt::print(stderr, "flux: {}\n", text);
  for (std::string const& text : complaints) fmt::print(stderr, "flux: {}\n", text);
  return code == kOk && !complaints.empty() ? kWrongOutput : code;
}

}  // namespace

int bench_mirrored(BenchOptions const& o) {
  bench::require_gpu(o.suite);
  return bench_overlap(o, nullptr, nullptr, {});
}

namespace {

int bench_on_rank(BenchOptions const& o, World& world) {
  if (o.tp > 0 && o.tp != world.size())
    throw Error(ErrorKind::kInvalid, fmt::format("--tp {} was asked for, and the launcher started {} ranks; give the "
                                                 "same number, or no --tp",
                                                 o.tp, world.size()));
  Team& team = world.team();
  if (team.gpu()->through_host())
    throw Error(ErrorKind::kUnsupported,
                "the ranks meet in host memory here, where the baselines have no way of their own; `flux run` times "
                "operators there");
  if (team.gpu()->nccl())
    throw Error(ErrorKind::kUnsupported,
                "the ranks do not reach each other's memory here, so that there is no overlap "
                "to measure; see `flux doctor`");
  Nccl* nccl = nullptr;
  std::vector<std::string> notes;
  try {
    nccl = &team.gpu()->nccl_beside(team.bootstrap(), team.options().limit_seconds);
  } catch (Error const& error) {  // the same on all ranks
    if (error.kind() == ErrorKind::kTimeout) throw;
    notes.push_back(fmt::format("without the method nccl: {}", error.what()));
  }
  return bench_overlap(o, &world, nccl, notes);
}

}  // namespace

int bench_processes(BenchOptions const& o) {
  bench::require_gpu(o.suite);
  WorldChoice choice = o.common.world;
  int const gpus = usable_gpus().count;
  choice.ranks = o.tp > 0 ? o.tp : gpus;
  if (choice.ranks < 2 && !bootstrap_from_environment())
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("--world processes has a rank a GPU, and {} can be used here; --tp 2 checks outputs with two "
                    "ranks that share it, --world mirror measures with one",
                    gpus));
  // Ctrl-C is for rank 0, which ends the suite behind the problem under way; this one waits for it.
  std::signal(SIGINT, SIG_IGN);
  int const code = choice.run([&](World& world) { return bench_on_rank(o, world); }, true);
  std::signal(SIGINT, SIG_DFL);
  return code;
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
int bench_processes(BenchOptions const&) { return without_kernels(); }

#endif

}  // namespace flux::cli
