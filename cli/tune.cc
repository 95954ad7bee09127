// flux tune: times the best of the simulated plans on this machine, and keeps the fastest for the operators.
#include <fmt/format.h>

#include "bench/host_probe.h"
#include "cli/command.h"
#include "cli/gpu_times.h"
#include "op/tune_operator.h"
#include "plan/plan_cache.h"
#include "plan/tuner.h"
#include "report/progress.h"
#include "tile/place.h"
#include "world/gpu_report.h"
#include "world/rank_zero.h"
#include "world/team.h"
#ifdef FLUX_WITH_SM90
#include "bench/gemm/plan_timing.h"
#endif

namespace flux::cli {
namespace {

struct TuneChoice {
  WorldChoice world;
  std::string op, dtype = "fp32", weight = "[out,in]", cache;
  Problem problem;
  size_t candidates = 8;
  int rounds = 7;
  double budget_seconds = 60;
  std::string machine;
  bool json = false, mirror = false;
};

void print(Tuned const& tuned, Ranking const& ranking, Machine const& machine) {
  fmt::print("{} on {}, {} rounds\n", to_string(ranking.problem), machine.name, tuned.rounds);
  fmt::print("  {:>12} {:>13}  plan, as far as it differs from the defaults\n", "measured us", "simulated us");
  for (TimedPlan const& plan : tuned.timed)
    fmt::print("{} {:>12} {:>13.1f}  {}\n", &plan == &tuned.timed.front() ? "*" : " ",
               plan.us.empty() ? "does not run" : fmt::format("{:.1f}", plan.median_us()), plan.candidate.total_us,
               short_line(plan.candidate.plan));
  fmt::print("\nplan: {}\n", to_string(tuned.best().candidate.plan));
}

void print_json(Tuned const& tuned, Ranking const& ranking, std::string const& note, std::string const& cache) {
  nlohmann::ordered_json json = {{"op", name(ranking.problem.op)},
                                 {"m", ranking.problem.m},
                                 {"n", ranking.problem.n},
                                 {"k", ranking.problem.k},
                                 {"tp", ranking.problem.ranks},
                                 {"dtype", name(ranking.problem.dtype)},
                                 {"plan", to_string(tuned.best().candidate.plan)},
                                 {"measured_us", tuned.best().median_us()},
                                 {"untuned_plan", to_string(ranking.best().plan)},
                                 {"open_plan", to_string(Plan{})},
                                 {"rounds", tuned.rounds},
                                 {"cache", cache},
                                 {"note", note},
                                 {"timed", nlohmann::ordered_json::array()}};
  for (TimedPlan const& plan : tuned.timed) {
    nlohmann::ordered_json one = {{"plan", to_string(plan.candidate.plan)}, {"simulated_us", plan.candidate.total_us}};
    one["measured_us"] = plan.us.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(plan.median_us());
    json["timed"].push_back(one);
  }
  fmt::print("{}\n", json.dump(2));
}

/// Whose numbers rank the plans: those asked for, those of the host just measured, or those known of GPUs like these.
Machine machine_of(World& world, TuneChoice const& o) {
  if (!o.machine.empty()) return find_machine(o.machine);
  return world.on_gpu() ? plan_table(world.team()).machine() : bench::measure_host(world);
}

std::unique_ptr<PlanTiming> timing_of(World& world, Problem const& problem) {
#ifdef FLUX_WITH_SM90
  if (world.kind() == "mirror") return bench::graph_timing_of_plans(world, problem);
#endif
  return std::make_unique<CallTiming>(world, problem);
}

int run_on(World& world, TuneChoice const& o) {
  if (!can_be_timed(world)) throw Error(ErrorKind::kUnsupported, about_link(world) + "; give each a GPU, or --mirror");
  Problem problem = o.problem;
  problem.ranks = world.size();
  Machine const machine = machine_of(world, o);
  PlanTable const& table = plan_table(world.team());
  if (world.on_gpu() && key(machine) != table.key())
    throw Error(ErrorKind::kInvalid,
                fmt::format("machine {} is {}; these ranks are on {}", machine.name, key(machine), table.key()));
  Ranking const ranking = rank_candidates(problem, machine);
  auto const timing = timing_of(world, problem);
  std::unique_ptr<Progress> progress;
  TuneOptions options;
  options.candidates = o.candidates, options.rounds = o.rounds;
  options.go_on = until(world, o.budget_seconds);
  bool const speaks = world.rank() == 0 || world.kind() == "mirror";
  if (speaks) progress = std::make_unique<Progress>("tuning", static_cast<int64_t>(o.candidates + 2) * (o.rounds + 1));
  options.tick = [&] {
    if (progress) progress->advance();
  };
  Tuned const tuned = tune(ranking, *timing, options);
  progress.reset();
  if (!speaks) return kOk;
  std::string const note = PlanCache::add(
      o.cache, {{key(machine), problem, tuned.best().candidate.plan, tuned.best().median_us()}}, {machine});
  if (!note.empty()) fmt::print(stderr, "flux: note: {}\n", note);
  if (o.json) return print_json(tuned, ranking, note, o.cache), kOk;
  print(tuned, ranking, machine);
  if (note.empty()) fmt::print("kept in {}\n", o.cache);
  return kOk;
}

/// In the world that was asked for; where one GPU stands for all ranks, as one of them, the others mirrored.
int run_tune(TuneChoice& o, bool dtype_given) {
  bool const mirror = o.mirror;
  Engine const engine = mirror ? Engine{true, {}} : o.world.engine({});
  if (engine.gpu && !dtype_given) o.problem.dtype = DType::kBF16;
  require_plannable(o.problem);
  bool const alone = mirror || (engine.gpu && o.problem.ranks > 1 && usable_gpus().count < o.problem.ranks);
  if (alone && o.problem.op == Op::kGemmAllReduce)
    throw Error(
        ErrorKind::kUnsupported,
        "a mirror plays gemm_ar with shots=one alone, which says nothing of the rest; tune it on as many GPUs as "
        "ranks, or with --host");
  if (!alone) return o.world.run([&](World& world) { return run_on(world, o); }, engine.gpu);
  WorldOptions options;
  options.limit_seconds = o.world.limit_seconds;
  // Of few rows some ranks have none: one that has is played.
  int const rank = Shards{o.problem.m, o.problem.ranks, 1}.owner(o.problem.m / 2);
  return run_on(*World::mirror(rank, o.problem.ranks, Partner::kHost, options), o);
}

}  // namespace

void add_tune(CLI::App& app, Action& action) {
  auto o = std::make_shared<TuneChoice>();
  o->cache = plan_file({});
  CLI::App* command =
      app.add_subcommand("tune", "Times the best of the simulated plans here and keeps the fastest for the operators");
  command->add_option("op", o->op, "ag_gemm, gemm_rs or gemm_ar")->required();
  command->add_option("--m", o->problem.m, "Rows, over all ranks")->required();
  command->add_option("--n", o->problem.n, "Columns of the output, over all ranks")->required();
  command->add_option("--k", o->problem.k, "Columns of the input, over all ranks")->required();
  CLI::Option const* dtype =
      command
          ->add_option("--dtype", o->dtype,
                       "fp32, bf16, fp16, fp64, int8 or fp8; on GPUs bf16 (the default there), fp16, "
                       "int8 or fp8")
          ->capture_default_str();
  command->add_option("--weight", o->weight, "[out,in] or [in,out]")->capture_default_str();
  command->add_option("--candidates", o->candidates, "How many plans are timed")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--rounds", o->rounds, "Each times every candidate once, in a new order")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->add_option("--budget-seconds", o->budget_seconds, "No round begins later than this")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command->add_option("--cache", o->cache, "The file of tuned plans; $FLUX_PLAN_CACHE is another way to say it");
  command->add_option(
      "--machine", o->machine,
      "By whose numbers the plans are ranked: a name or a file, as flux plan takes it; default: the host "
      "is measured, and of GPUs those in the cache or the named ones are taken");
  o->world.add_to(*command);
  o->world.add_gpu_to(*command);
  command->add_flag("--mirror", o->mirror,
                    "One GPU plays one of --ranks, the others' memory is pinned host memory across PCIe; taken by "
                    "itself where ranks on GPUs are more than there are");
  command->add_flag("--json", o->json, "Prints one JSON object instead of text");
  command->callback([o, dtype, &action] {
    action = [o, dtype] {
      o->problem.op = parse_op(o->op), o->problem.dtype = parse_dtype(o->dtype);
      o->problem.layout = parse_weight_layout(o->weight);
      o->problem.ranks = o->world.ranks;
      require_plannable(o->problem);
      return run_tune(*o, dtype->count() > 0);
    };
  });
}

}  // namespace flux::cli
