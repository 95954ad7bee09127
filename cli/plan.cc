// flux plan: what FLUX would choose for a problem on a machine, and why not the rest.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/plan_check.h"
#include "plan/tuner.h"
#include "trace/trace.h"

namespace flux::cli {
namespace {

struct PlanOptions {
  std::string op, machine = "h200", dtype = "bf16", weight = "[out,in]", timeline;
  Problem problem;
  bool gated = false, json = false;
  int nodes = 0;
  size_t show = 10;
  std::vector<std::filesystem::path> check;
  std::vector<std::string> plans;
};

nlohmann::ordered_json to_json(Candidate const& c) {
  nlohmann::ordered_json json = {{"plan", to_string(c.plan)}};
  if (c.total_us > 0) {
    json["total_us"] = c.total_us, json["waited_us"] = c.waited_us, json["stalled_us"] = c.stalled_us;
    json["behind_us"] = c.behind_us;
  }
  if (!c.out.empty()) json["out"] = c.out;
  return json;
}

void print_json(Ranking const& ranking, Machine const& machine) {
  Problem const& p = ranking.problem;
  double const total = ranking.best().total_us, hidden = ranking.parts.none_us - ranking.parts.gemm_us;
  nlohmann::ordered_json json = {{"op", name(p.op)},
                                 {"m", p.m},
                                 {"n", p.n},
                                 {"k", p.k},
                                 {"tp", p.ranks},
                                 {"nodes", p.nodes},
                                 {"dtype", name(p.dtype)},
                                 {"machine", machine.name},
                                 {"plan", to_string(ranking.best().plan)},
                                 {"fused", ranking.best().plan.fused},
                                 {"total_us", total},
                                 {"gemm_us", ranking.parts.gemm_us},
                                 {"comm_us", ranking.parts.comm_us},
                                 {"collective_us", ranking.parts.collective_us},
                                 {"none_us", ranking.parts.none_us},
                                 {"floor_us", ranking.parts.floor_us()},
                                 {"ect_us", total - ranking.parts.gemm_us},
                                 {"efficiency", nullptr},
                                 {"tuned", nlohmann::json::array()},
                                 {"candidates", nlohmann::json::array()}};
  if (hidden > 0) json["efficiency"] = 1 - (total - ranking.parts.gemm_us) / hidden;
  for (Candidate const& c : worth_timing(ranking, TuneOptions{}.candidates)) json["tuned"].push_back(to_string(c.plan));
  for (Candidate const& c : ranking.candidates) json["candidates"].push_back(to_json(c));
  fmt::print("{}\n", json.dump(2));
}

void print_text(Ranking const& ranking, Machine const& machine, size_t show) {
  Parts const& parts = ranking.parts;
  fmt::print("{} on {}, simulated\n", to_string(ranking.problem), machine.name);
  fmt::print(
      "  GEMM alone {:.1f} us, communication alone {:.1f}; by libraries one after the other {:.1f}; floor {:.1f}\n\n",
      parts.gemm_us, parts.comm_us, parts.none_us, parts.floor_us());
  fmt::print("  {:>10} {:>8} {:>6} {:>10} {:>10} {:>10}  plan, as far as it differs from the defaults\n", "total us",
             "/ floor", "E", "waited us", "stalled us", "behind us");
  double const hidden = parts.none_us - parts.gemm_us;
  size_t shown = 0, out = 0;
  for (Candidate const& c : ranking.candidates) {
    if (!c.chosen_from() || shown == show) continue;
    fmt::print("{} {:>10.1f} {:>8.3f} {:>6} {:>10.1f} {:>10.1f} {:>10.1f}  {}\n", shown++ == 0 ? "*" : " ", c.total_us,
               c.total_us / parts.floor_us(),
               hidden > 0 ? fmt::format("{:.2f}", 1 - (c.total_us - parts.gemm_us) / hidden) : "", c.waited_us,
               c.stalled_us, c.behind_us, short_line(c.plan));
  }
  fmt::print("\n  out:\n");
  std::vector<std::pair<Candidate const*, size_t>> reasons;  // the first candidate of each, and how many more
  for (Candidate const& c : ranking.candidates) {
    if (c.chosen_from()) continue;
    auto const same = std::ranges::find_if(reasons, [&](auto const& r) { return r.first->out == c.out; });
    if (same != reasons.end())
      ++same->second;
    else
      reasons.push_back({&c, 0});
  }
  for (auto const& [c, more] : reasons)
    if (out++ < show)
      fmt::print("    {}{}: {}\n",
                 c->by_libraries ? fmt::format("one after the other, {:.1f} us", c->total_us) : short_line(c->plan),
                 more > 0 ? fmt::format(" and {} more", more) : "", c->out);
  if (out > show) fmt::print("    and {} more reasons; --show shows them, --json has all candidates\n", out - show);
  fmt::print("\n{}{}\nplan: {}\n",
             ranking.best().plan.fused ? "fused" : "not fused: nothing that hides communication is faster here",
             ranking.best().total_us > parts.none_us
                 ? "; a library GEMM and collective, one after the other, would be faster still"
                 : "",
             to_string(ranking.best().plan));
}

int run(PlanOptions o) {
  if (!o.check.empty()) {
    PlanCheck const check = check_plans(o.check);
    if (o.json)
      fmt::print("{}\n", to_json(check).dump(2));
    else
      print(check);
    return kOk;
  }
  if (o.op.empty())
    throw Error(ErrorKind::kInvalid, "which operator? ag_gemm, gemm_rs or gemm_ar, with --m, --n and --k");
  require_writable(o.timeline);
  o.problem.op = parse_op(o.op), o.problem.dtype = parse_dtype(o.dtype);
  o.problem.layout = parse_weight_layout(o.weight);
  if (o.gated && !o.problem.gathers())
    throw Error(ErrorKind::kInvalid, "--gated is for ag_gemm, whose n counts gate and up");
  o.problem.gated = o.gated;
  Machine const machine = find_machine(o.machine);
  o.problem.nodes = o.nodes > 0 ? o.nodes : machine.nodes_of(o.problem.ranks);
  std::vector<Plan> plans;
  for (std::string const& line : o.plans) plans.push_back(parse_plan(line));
  Ranking const ranking = plans.empty() ? rank_candidates(o.problem, machine) : rank_plans(o.problem, machine, plans);
  if (o.json)
    print_json(ranking, machine);
  else
    print_text(ranking, machine, o.show);
  if (!o.timeline.empty()) {
    TraceFiles const files = write_trace(o.timeline, simulate(o.problem, ranking.best().plan, machine, true).timeline);
    if (!o.json) fmt::print("timeline: {}, picture: {}\n", files.json.string(), files.svg.string());
  }
  return kOk;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  auto o = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand(
      "plan", "Shows what would be chosen for a problem on a machine, simulated, and why not the rest");
  command->add_option("op", o->op, "ag_gemm, gemm_rs or gemm_ar");
  command->add_option("--m", o->problem.m, "Rows, over all ranks");
  command->add_option("--n", o->problem.n, "Columns of the output, over all ranks");
  command->add_option("--k", o->problem.k, "Columns of the input, over all ranks");
  command->add_option("--tp", o->problem.ranks, "Ranks")->capture_default_str();
  command->add_option("--nodes", o->nodes, "Nodes that the ranks are on; default: as few as the machine's nodes hold")
      ->check(CLI::Range(1, 16));
  command->add_option("--dtype", o->dtype, "bf16, fp16, int8 or fp8; fp32 and fp64 on the host engine")
      ->capture_default_str();
  command->add_option("--weight", o->weight, "[out,in] or [in,out]")->capture_default_str();
  command->add_flag("--gated", o->gated, "n counts gate and up of a gated layer");
  std::string known;
  for (Machine const& machine : named_machines()) known += (known.empty() ? "" : ", ") + machine.name;
  command->add_option("--machine", o->machine, "One of " + known + "; or a file, as flux doctor --measure writes it")
      ->capture_default_str();
  command->add_option("--plan", o->plans, "Simulates this plan instead of all candidates; may be repeated");
  command->add_option("--show", o->show, "So many candidates of each kind")->capture_default_str();
  command->add_option("--timeline", o->timeline, "Writes the simulated call of the best plan as a trace and a picture");
  command->add_option("--check", o->check, "Result files: instead, their rows are simulated and compared");
  command->add_flag("--json", o->json, "Prints one JSON object instead of text");
  command->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace flux::cli
