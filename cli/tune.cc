// flux tune: times the best of the simulated plans on this machine, and keeps the fastest.
#include <fmt/format.h>

#include <chrono>
#include <map>

#include "bench/case.h"
#include "bench/host_probe.h"
#include "cli/command.h"
#include "plan/plan_cache.h"
#include "plan/tuner.h"
#include "report/progress.h"
#include "world/rank_zero.h"

namespace flux::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct TuneChoice {
  WorldChoice world;
  std::string op, dtype = "fp32", weight = "[out,in]", cache;
  Problem problem;
  size_t candidates = 8;
  int rounds = 7;
  double budget_seconds = 60;
  bool json = false;
};

/// Runs plans on the ranks of a world of the host engine.
class HostTiming : public PlanTiming {
 public:
  HostTiming(World& world, Problem const& problem) : world_(world) {
    problem_.op = problem.op, problem_.m = problem.m, problem_.n = problem.n, problem_.k = problem.k;
    problem_.dtype = problem.dtype, problem_.layout = problem.layout;
  }

  std::optional<double> time_us(Plan const& plan) override {
    auto& test = cases_[to_string(plan)];
    if (!test) test = std::make_unique<bench::Case>(world_, problem_, plan, 1);
    return bench::measure(world_, {{"plan", [&] { test->run(plan.fused); }}}, 1)["plan"].median();
  }

 private:
  World& world_;
  bench::Problem problem_;
  std::map<std::string, std::unique_ptr<bench::Case>> cases_;
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

int run_on(World& world, TuneChoice const& o) {
  Problem problem = o.problem;
  problem.ranks = world.size();
  Machine const machine = bench::measure_host(world);
  Ranking const ranking = rank_candidates(problem, machine);
  HostTiming timing(world, problem);
  std::unique_ptr<Progress> progress;
  auto const begin = Clock::now();
  TuneOptions options;
  options.candidates = o.candidates, options.rounds = o.rounds;
  options.go_on = [&] {  // rank 0's clock decides for all
    bool const mine = std::chrono::duration<double>(Clock::now() - begin).count() < o.budget_seconds;
    return world.all_gather(mine ? "on" : "end")[0] == "on";
  };
  if (world.rank() == 0)
    progress = std::make_unique<Progress>("tuning", static_cast<int64_t>(o.candidates + 1) * (o.rounds + 1));
  options.tick = [&] {
    if (progress) progress->advance();
  };
  Tuned const tuned = tune(ranking, timing, options);
  progress.reset();
  if (world.rank() != 0) return kOk;
  std::string const note = PlanCache::add(
      o.cache, {{key(machine), problem, tuned.best().candidate.plan, tuned.best().median_us()}}, {machine});
  if (!note.empty()) fmt::print(stderr, "flux: note: {}\n", note);
  if (o.json) return print_json(tuned, ranking, note, o.cache), kOk;
  print(tuned, ranking, machine);
  if (note.empty()) fmt::print("kept in {}\n", o.cache);
  return kOk;
}

}  // namespace

void add_tune(CLI::App& app, Action& action) {
  auto o = std::make_shared<TuneChoice>();
  o->cache = plan_file({});
  CLI::App* command =
      app.add_subcommand("tune", "Times the best of the simulated plans on this machine's cores and keeps the fastest");
  command->add_option("op", o->op, "ag_gemm, gemm_rs or gemm_ar")->required();
  command->add_option("--m", o->problem.m, "Rows, over all ranks")->required();
  command->add_option("--n", o->problem.n, "Columns of the output, over all ranks")->required();
  command->add_option("--k", o->problem.k, "Columns of the input, over all ranks")->required();
  command->add_option("--dtype", o->dtype, "fp32, bf16, fp16 or fp64")->capture_default_str();
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
  o->world.add_to(*command);
  command->add_flag("--json", o->json, "Prints one JSON object instead of text");
  command->callback([o, &action] {
    action = [o] {
      o->problem.op = parse_op(o->op), o->problem.dtype = parse_dtype(o->dtype);
      o->problem.layout = parse_weight_layout(o->weight);
      o->problem.ranks = o->world.ranks;
      require_plannable(o->problem);
      return o->world.run([&](World& world) { return run_on(world, *o); });
    };
  });
}

}  // namespace flux::cli
