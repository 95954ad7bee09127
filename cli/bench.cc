// flux bench: a suite of workloads, methods interleaved, into a result file and a table.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "bench/tolerance.h"
#include "bench/workloads.h"
#ifdef FLUX_WITH_SM90
#include "bench/gemm/overlap_suite.h"
#include "bench/gemm/suite.h"
#endif
#include "cli/command.h"
#include "cli/machine.h"
#include "flux/version.h"
#include "report/progress.h"
#include "report/result_file.h"

namespace flux::cli {
namespace {

struct BenchOptions {
  Common common;
  std::string suite = "host", workloads, out = "bench/results", only, cublaslt, tier, mirror, variant;
  int tp = 8;
  int64_t least_m = 0, most_m = INT64_MAX;
  std::string timing;
};

// Both methods of one workload, as rows.
std::vector<ResultRow> rows_of(World& world, bench::Workload const& w, BenchOptions const& o, Plan const& plan) {
  bench::Case test(world, w.problem, plan, o.common.seed);
  double const error = test.error(64);
  bench::Overlap const overlap = timed(world, test.subject(), o.common);
  auto const& p = w.problem;
  if (!o.common.timeline_path.empty()) {  // one a workload
    auto const path = std::filesystem::path(o.common.timeline_path);
    draw(
        world, (path.parent_path() / fmt::format("{}-{}-m{}.json", path.stem().string(), w.name, p.m)).string(),
        bench::timeline_of(p, world.size()), plan.workers, [&](Timeline* t) { test.record(t); },
        [&] { test.run(true); });
  }
  ResultRow row;
  row.workload = w.name, row.op = name(p.op);
  row.m = p.m, row.n = p.n, row.k = p.k, row.tp = w.tp;
  row.dtype = name(p.dtype), row.weight = name(p.layout), row.epilogue = w.epilogue;
  row.world = world.kind(), row.link = "host", row.duplex = true;
  row.samples = o.common.samples;
  row.gemm_us = overlap.gemm.median(), row.gemm_by = overlap.gemm_by, row.comm_us = overlap.comm.median();
  row.link_gbps = world.link().gbps, row.floor_us = overlap.floor_us(), row.peak_floor_us = overlap.floor_us();
  row.error = error;
  std::vector<ResultRow> rows;
  for (auto const& [method, times, fused] :
       {std::tuple{"flux", &overlap.fused, true}, std::tuple{"none", &overlap.none, false}}) {
    row.method = method;
    row.total_us = times->median(), row.p10_us = times->quantile(0.1), row.p90_us = times->quantile(0.9);
    row.ect_us = row.total_us - *row.gemm_us;
    row.efficiency.reset();
    if (overlap.hides()) row.efficiency = fused ? overlap.efficiency() : 0.0;
    Plan used = plan;
    used.fused = fused;
    row.plan = "host " + to_string(used);
    rows.push_back(row);
  }
  return rows;
}

int finish(BenchOptions const& o, ResultFile& results, bool right) {
  results.command = fmt::format("{}", fmt::join(command_line(), " "));
  auto const path = write_result(o.out, results);
  if (o.common.json)
    fmt::print("{}\n", to_json(results));
  else
    fmt::print("{}\nresults: {}\n", to_table(results), path.string());
  if (!right) fmt::print(stderr, "flux: at least one output was wrong; see the column of errors\n");
  return right ? kOk : kWrongOutput;
}

int run(BenchOptions const& o) {
  auto const file = o.workloads.empty() ? bench::workload_file() : std::filesystem::path(o.workloads);
  auto list = bench::read_workloads(file, o.suite);
  if (!o.only.empty()) std::erase_if(list, [&](auto const& w) { return w.name.find(o.only) == std::string::npos; });
  if (list.empty())
    throw Error(ErrorKind::kInvalid, fmt::format("no workload of suite {} has '{}' in its name", o.suite, o.only));
  Plan const plan = o.common.plan();
  ResultFile results;
  results.suite = o.suite, results.date = utc_now(), results.commit = commit();
  results.machine = machine_facts();
  bool right = true;
  for (auto const& w : list) {
    WorldChoice choice = o.common.world;
    choice.ranks = w.tp;
    int const code = choice.run([&](World& world) {
      auto const rows = rows_of(world, w, o, plan);
      if (world.rank() == 0) results.rows.insert(results.rows.end(), rows.begin(), rows.end());
      return *rows[0].error <= bench::tolerance(w.problem.dtype, w.problem.op, plan, w.tp) ? kOk : kWrongOutput;
    });
    right = right && code == kOk;
  }
  return finish(o, results, right);
}

#ifdef FLUX_WITH_SM90

/// Runs a suite, `suite(progress)`, with a bar on the terminal.
template <class Suite>
ResultFile with_progress(std::string const& title, Suite&& suite) {
  std::unique_ptr<Progress> bar;
  return suite([&](int done, int all) {
    if (!bar) bar = std::make_unique<Progress>(title, all), bar->advance(done - 1);
    bar->advance();
  });
}

// The GEMMs alone, on a GPU.
int run_gemms(BenchOptions const& o) {
  bench::GemmSuite suite;
  suite.workloads = o.workloads.empty() ? bench::workload_file().string() : o.workloads;
  suite.cublaslt = o.cublaslt, suite.rounds = o.common.samples;
  if (!o.tier.empty()) suite.tiers = {o.tier};
  ResultFile results = with_progress("gemm", [&](auto&& progress) { return bench::gemm_suite(suite, progress); });
  bool const right = std::all_of(results.rows.begin(), results.rows.end(), [](auto const& row) {
    return *row.error <= bench::tolerance(parse_dtype(row.dtype));
  });
  return finish(o, results, right);
}

// Operators on one GPU of a world whose other ranks are mirrored.
int run_mirrored(BenchOptions const& o) {
  bench::OverlapSuite suite;
  suite.workloads = o.workloads.empty() ? bench::workload_file().string() : o.workloads;
  suite.tier = o.suite, suite.only = o.only, suite.cublaslt = o.cublaslt;
  suite.ranks = o.tp, suite.least_m = o.least_m, suite.most_m = o.most_m, suite.timing = o.timing,
  suite.timeline = o.common.timeline_path, suite.rounds = o.common.samples;
  suite.partner = o.mirror == "pcie" ? Partner::kHost : Partner::kDevice;
  suite.plan = o.common.plan(), suite.variant = o.variant;
  ResultFile results = with_progress(o.suite, [&](auto&& progress) { return bench::overlap_suite(suite, progress); });
  bool const right = std::all_of(results.rows.begin(), results.rows.end(), [&](auto const& row) {
    return !row.error ||
           *row.error <= bench::tolerance(parse_dtype(row.dtype), parse_op(row.op), suite.plan, suite.ranks);
  });
  return finish(o, results, right);
}

#else

int without_kernels(BenchOptions const&) {
  throw Error(ErrorKind::kUnsupported,
              "this build has no GPU kernels; configure with nvcc in PATH, or bench another suite");
}
constexpr auto run_gemms = without_kernels, run_mirrored = without_kernels;

#endif

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* command =
      app.add_subcommand("bench", "Times a suite of workloads, fused and not, and writes a result file");
  command
      ->add_option("--suite", o->suite,
                   "`host`: operators on this machine's cores; `gemm`: per-rank GEMMs on a GPU; or a tier of your own "
                   "workload file")
      ->capture_default_str();
  command->add_option("--workloads", o->workloads, "A workload file instead of the one that ships with FLUX");
  command->add_option("--only", o->only, "Only workloads whose name contains this");
  command->add_option("--tier", o->tier, "Suite gemm: this tier of the workload file instead of core and extended");
  command->add_option("--cublaslt", o->cublaslt, "Suite gemm: libcublasLt, where the loader does not find it");
  command
      ->add_option("--mirror", o->mirror,
                   "Runs the suite (core, extended, edge) on one GPU as one rank of --tp; the others' memory is played "
                   "by pinned host memory (`pcie`) or the same GPU (`device`)")
      ->check(CLI::IsMember({"pcie", "device"}));
  command->add_option("--tp", o->tp, "With --mirror: ranks")->check(CLI::Range(2, 16))->capture_default_str();
  command->add_option("--least-m", o->least_m, "With --mirror: only workloads of at least so many rows");
  command->add_option("--most-m", o->most_m, "With --mirror: only workloads of at most so many rows");
  command->add_option("--timing", o->timing, "With --mirror: calls replayed as a `graph`, or enqueued (`eager`)")
      ->check(CLI::IsMember({"graph", "eager"}));
  command->add_option("--variant", o->variant, "With --mirror: a name for what --plan forces, kept in the rows");
  command->add_option("--out", o->out, "Folder of the result file")->capture_default_str();
  o->common.add_to(*command);
  command->callback([o, &action] {
    action = [o] {
      if (o->common.world.kind != "threads")
        throw Error(ErrorKind::kUnsupported,
                    "flux bench measures the host engine in --world threads; processes are for flux run");
      if (o->common.samples < 1) throw Error(ErrorKind::kInvalid, "--samples is 0; a benchmark needs at least 1");
      std::error_code failure;
      std::filesystem::create_directories(o->out, failure);  // before the timing, not after
      require_writable(o->out + "/results");
      if (!o->mirror.empty()) return run_mirrored(*o);
      return o->suite == "gemm" ? run_gemms(*o) : run(*o);
    };
  });
}

}  // namespace flux::cli
