// flux bench: a suite of workloads, methods interleaved, into a result file and a table.
#include "cli/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "bench/sensors.h"
#include "bench/suite_run.h"
#include "bench/tolerance.h"
#include "bench/workloads.h"
#include "cli/machine.h"
#include "flux/version.h"

namespace flux::cli {
namespace {

constexpr int kInterrupted = 128 + SIGINT;

// Ctrl-C ends a suite behind the problem that is measured; a second one ends it at once.
volatile std::sig_atomic_t interrupted = 0;
void note_interrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

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

int bench_host(BenchOptions const& o) {
  auto list = bench::read_workloads(o.workload_file(), o.suite);
  if (!o.only.empty()) std::erase_if(list, [&](auto const& w) { return w.name.find(o.only) == std::string::npos; });
  if (list.empty())
    throw Error(ErrorKind::kInvalid, fmt::format("no workload of suite {} has '{}' in its name", o.suite, o.only));
  Plan const plan = o.common.plan();
  std::vector<bench::Unit> units;
  for (bench::Workload const& w : list) {
    auto const& p = w.problem;
    ResultRow problem;
    problem.workload = w.name, problem.op = name(p.op), problem.m = p.m, problem.n = p.n, problem.k = p.k;
    problem.tp = w.tp, problem.dtype = name(p.dtype), problem.weight = name(p.layout), problem.epilogue = w.epilogue;
    double const operations = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    units.push_back({problem, operations * (o.common.samples + 1) / 1e4, [&o, &plan, w] {
                       std::vector<ResultRow> rows;
                       WorldChoice choice = o.common.world;
                       choice.ranks = w.tp;
                       choice.run([&](World& world) {
                         auto const mine = rows_of(world, w, o, plan);
                         if (world.rank() == 0) rows = mine;
                         return kOk;
                       });
                       return rows;
                     }});
  }
  return run_suite(o, units, machine_facts(), "", [&](ResultRow const& row) {
    return bench::tolerance(parse_dtype(row.dtype), parse_op(row.op), plan, static_cast<int>(row.tp));
  });
}

/// Where the result goes: the file to go on with, a file, or a folder that is made. Checked before the timing.
std::filesystem::path place_of(BenchOptions const& o) {
  if (!o.resume.empty()) {
    if (!std::filesystem::is_regular_file(o.resume))
      throw Error(ErrorKind::kInvalid,
                  fmt::format("--resume {}: there is no such file; --out names a new one", o.resume));
    require_writable(o.resume);
    return o.resume;
  }
  bool const file = std::filesystem::path(o.out).extension() == ".json";
  std::error_code failure;
  if (!file) std::filesystem::create_directories(o.out, failure);
  require_writable(file ? o.out : o.out + "/results");
  return o.out;
}

/// `world` as it was said, or empty.
int bench_in(std::string const& world, BenchOptions const& o) {
  bool const on_gpus = is_gpu_suite(o.suite), alone = o.suite == "gemm" || o.suite == "host";
  if (alone && (world == "processes" || world == "mirror"))
    throw Error(ErrorKind::kInvalid, fmt::format("--suite {} has no --world {}; those are for operators on GPUs, as "
                                                 "--suite core",
                                                 o.suite, world));
  if (!o.dtype.empty() && o.suite != "gemm")
    throw Error(ErrorKind::kInvalid, "--dtype is for --suite gemm; other suites take their workloads'");
  if (on_gpus && world == "threads")
    throw Error(ErrorKind::kInvalid, fmt::format("--suite {} runs on GPUs: --world mirror or processes", o.suite));
  if (world == "processes" && !o.mirror.empty())
    throw Error(ErrorKind::kInvalid, "--mirror plays the ranks that --world processes has; give one of the two");
  if (world == "processes") return bench_processes(o);
  if (world == "mirror" || !o.mirror.empty() || on_gpus) return bench_mirrored(o);
  return o.suite == "gemm" ? bench_gemms(o) : bench_host(o);
}

}  // namespace

std::filesystem::path BenchOptions::workload_file() const {
  return workloads.empty() ? bench::workload_file() : std::filesystem::path(workloads);
}

namespace {

/// Rank 0 says which unit comes next: it knows which its file has.
int follow(World& world, std::vector<bench::Unit> const& units) {
  bench::follow_units(units, [&] { return std::stoi(world.all_gather({})[0]); });
  return kOk;
}

}  // namespace

bool shares_a_gpu(World const& world) {
  return std::ranges::any_of(world.links(), [](LinkProof const& link) { return link.way == "same GPU"; });
}

int run_suite(BenchOptions const& o, std::vector<bench::Unit> const& units, MachineFacts const& machine,
              std::string const& pci_bus_id, std::function<double(ResultRow const&)> const& tolerated, World* world) {
  if (world && world->rank() != 0) return follow(*world, units);
  bool const counts = !world || !shares_a_gpu(*world);
  ResultFile head;
  head.suite = o.suite, head.date = utc_now(), head.commit = commit(), head.machine = machine;
  head.command = fmt::format("{}", fmt::join(command_line(), " "));
  auto const sensors = [&] { return pci_bus_id.empty() ? std::nullopt : bench::read_sensors(pci_bus_id); };
  head.before = sensors();
  GrowingResult results(counts ? place_of(o) : "", head);
  std::signal(SIGINT, note_interrupt);
  auto const tell = [&](int unit) {
    if (world) world->all_gather(std::to_string(unit));
  };
  bool const whole = bench::run_units(
      o.suite, units, results, [] { return interrupted != 0; }, tell);
  std::signal(SIGINT, SIG_DFL);
  results.close(sensors());
  if (!whole && results.file().rows.empty()) {
    fmt::print(stderr, "flux: stopped before the first problem was measured; there is no file\n");
    return kInterrupted;
  }
  if (o.common.json)
    fmt::print("{}\n", to_json(results.file()));
  else
    fmt::print("{}\n{}\n", to_table(results.file()),
               counts ? "results: " + results.path().string() : "there is no result file");
  if (!counts)
    fmt::print(stderr,
               "flux: ranks shared a GPU, which served them in turn: outputs were checked, times mean nothing\n");
  if (!whole && counts) {
    fmt::print(stderr, "flux: stopped; the same command with --resume {} goes on\n", results.path().string());
  }
  if (!whole) return kInterrupted;
  bool const right = std::ranges::all_of(
      results.file().rows, [&](ResultRow const& row) { return !row.error || *row.error <= tolerated(row); });
  if (!right) fmt::print(stderr, "flux: at least one output was wrong; see the column of errors\n");
  return right ? kOk : kWrongOutput;
}

void add_bench(CLI::App& app, Action& action) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* command =
      app.add_subcommand("bench", "Times a suite of workloads, fused and not, and writes a result file");
  command
      ->add_option("--suite", o->suite,
                   "`host`: operators on this machine's cores; `gemm`: per-rank GEMMs on a GPU; `core`, `extended`, "
                   "`edge`, `decode`, `ablation`: operators on GPUs, see --world; or a tier of your own workload file")
      ->capture_default_str();
  command->add_option("--workloads", o->workloads, "A workload file instead of the one that ships with FLUX");
  command->add_option("--only", o->only, "Only workloads whose name contains this");
  command->add_option("--tier", o->tier, "Suite gemm: this tier of the workload file instead of core and extended");
  command->add_option(
      "--dtype", o->dtype,
      "Suite gemm: bf16, fp16, int8 or fp8 instead of the workloads' own; the latter two by FLUX alone");
  command->add_option("--cublaslt", o->cublaslt, "On GPUs: libcublasLt, where the loader does not find it");
  command
      ->add_option(
          "--mirror", o->mirror,
          "In --world mirror: what plays the other ranks' memory, pinned host memory (`pcie`, what is taken if "
          "nothing is said) or the same GPU (`device`)")
      ->check(CLI::IsMember({"pcie", "device"}));
  command
      ->add_option("--tp,--ranks", o->tp,
                   "Operators on GPUs: ranks, and only workloads of so many; if nothing is said 8 in a mirror, and as "
                   "many processes as there are GPUs")
      ->check(CLI::Range(2, 16));
  command->add_option("--least-m", o->least_m, "Operators on GPUs: only workloads of at least so many rows");
  command->add_option("--most-m", o->most_m, "Operators on GPUs: only workloads of at most so many rows");
  command->add_option("--timing", o->timing, "Operators on GPUs: calls replayed as a `graph`, or enqueued (`eager`)")
      ->check(CLI::IsMember({"graph", "eager"}));
  command->add_flag(
      "--cold", o->cold,
      "Operators on GPUs: also with weights that are not in the L2, rotated over more than twice its size");
  command->add_option("--variant", o->variant, "Operators on GPUs: a name for what --plan forces, kept in the rows");
  command
      ->add_option("-o,--out", o->out,
                   "Folder of the result file, or a name that ends in .json; a file that is there is gone on with")
      ->capture_default_str();
  command->add_option(
      "--resume", o->resume,
      "Goes on with the file that a stopped run of the same command left; it holds whole problems only");
  WorldChoice& world = o->common.world;
  world.kind_option =
      command
          ->add_option(
              "--world", world.kind,
              "`threads`: operators on this machine's cores. `mirror`: on one GPU as one rank of --tp, what GPU "
              "suites take if nothing is said. `processes`: a rank a GPU; ranks that share one are checked, and "
              "not recorded")
          ->check(CLI::IsMember({"threads", "mirror", "processes"}));
  world.limit_seconds = 120;  // a problem is set up in less
  world.add_limits_to(*command), o->common.add_measuring_to(*command);
  command->callback([o, &action] {
    action = [o] {
      if (o->common.samples < 1) throw Error(ErrorKind::kInvalid, "--samples is 0; a benchmark needs at least 1");
      place_of(*o);
      return bench_in(o->common.world.kind_option->count() > 0 ? o->common.world.kind : "", *o);
    };
  });
}

}  // namespace flux::cli
