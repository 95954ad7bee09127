// flux simulate: a whole model's step on a cluster that need not be there.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/simulate_nodes.h"
#include "cli/simulate_table.h"
#include "plan/step.h"

namespace flux::cli {
namespace {

struct SimulateOptions {
  StepProblem problem;
  std::string model = "llama2-70b", machine = "h800", method = "flux";
  bool json = false;
};

// What tensor-parallel communication is said to cost without overlap, as a part of the step.
std::string_view published_share(Phase phase) {
  return phase == Phase::kTrain ? "10 to 30 %" : phase == Phase::kPrefill ? "20 to 40 %" : "above 20 to 40 %";
}

int run(SimulateOptions const& o) {
  StepProblem p = o.problem;
  p.model = find_transformer(o.model);
  Method const method = parse_method(o.method);
  Costs costs(find_machine(o.machine));
  Step const step = simulate_step(p, method, costs);
  std::vector<std::pair<Method, Step>> all;
  for (Method m : {Method::kNone, Method::kChunked, Method::kFlux}) all.emplace_back(m, simulate_step(p, m, costs));
  double const tokens = static_cast<double>(p.batch) * (p.phase == Phase::kDecode ? 1 : static_cast<double>(p.seq));
  double const rate = tokens / step.total_us() * 1e6;
  if (o.json) {
    nlohmann::ordered_json json = {{"phase", name(p.phase)},
                                   {"model", p.model.name},
                                   {"machine", costs.machine().name},
                                   {"tp", p.tp},
                                   {"nodes", p.nodes > 0 ? p.nodes : costs.machine().nodes_of(p.tp)},
                                   {"pp", p.pp},
                                   {"dp", p.dp},
                                   {"gpus", p.gpus()},
                                   {"batch", p.batch},
                                   {"micro", p.micro},
                                   {"seq", p.seq},
                                   {"method", name(method)},
                                   {"step_us", step.total_us()},
                                   {"tokens_per_second", rate}};
    for (StepPart const& part : step.parts) json["parts"][part.name] = part.us;
    for (auto const& [m, other] : all)
      json["methods"][std::string(name(m))] = {{"step_us", other.total_us()},
                                               {"communication_share", other.tp_share()},
                                               {"speed_up", all[0].second.total_us() / other.total_us()}};
    fmt::print("{}\n", json.dump(2));
    return kOk;
  }
  fmt::print("{} of {} on {} x {}, simulated: tp {}, pp {}, dp {}, {} sequences of {}\n", name(p.phase), p.model.name,
             p.gpus(), costs.machine().name, p.tp, p.pp, p.dp, p.batch, p.seq);
  fmt::print("  method {}\n", name(method));
  for (StepPart const& part : step.parts)
    if (part.us > 0)
      fmt::print("  {:>12.2f} ms {:>5.1f} %  {}\n", part.us / 1e3, 100 * part.us / step.total_us(), part.name);
  fmt::print("  {:>12.2f} ms          a step, {:.0f} tokens/s\n\n", step.total_us() / 1e3, rate);
  fmt::print("  {:<8} {:>12} {:>14} {:>10}\n", "method", "step ms", "communication", "speed-up");
  for (auto const& [m, other] : all)
    fmt::print("  {:<8} {:>12.2f} {:>12.1f} % {:>10.2f}\n", name(m), other.total_us() / 1e3, 100 * other.tp_share(),
               all[0].second.total_us() / other.total_us());
  fmt::print("  published of `none`: {} of the step (docs/simulator.md)\n", published_share(p.phase));
  return kOk;
}

void add_phase(CLI::App& simulate, Action& action, Phase phase, char const* about, int64_t batch) {
  auto o = std::make_shared<SimulateOptions>();
  StepProblem& p = o->problem;
  p.phase = phase, p.batch = batch;
  bool const train = phase == Phase::kTrain;
  CLI::App* command = simulate.add_subcommand(std::string(name(phase)), about);
  std::string models, machines;
  for (auto const& model : named_transformers()) models += (models.empty() ? "" : ", ") + model.name;
  for (auto const& machine : named_machines()) machines += (machines.empty() ? "" : ", ") + machine.name;
  command->add_option("--model", o->model, "One of " + models)->capture_default_str();
  command->add_option("--machine", o->machine, "One of " + machines + "; or a file")->capture_default_str();
  command->add_option("--tp", p.tp, "Ranks that share a layer")->capture_default_str();
  command->add_option("--nodes", p.nodes, "Nodes that those are on; default: as few as the machine's nodes hold")
      ->check(CLI::Range(1, 16));
  if (train) {
    command->add_option("--pp", p.pp, "Stages of the pipeline")->capture_default_str();
    command->add_option("--dp", p.dp, "Replicas")->capture_default_str();
    command->add_option("--micro", p.micro, "Sequences that go through the pipeline together")->capture_default_str();
    command->add_option("--network-gbps", p.network_gbps, "Between nodes, a GPU, 10^9 bytes/s")->capture_default_str();
  }
  command->add_option("--batch", p.batch, train ? "Sequences of a step, over all replicas" : "Sequences")
      ->capture_default_str();
  command->add_option("--seq", p.seq, phase == Phase::kDecode ? "Tokens that came before" : "Tokens of a sequence")
      ->capture_default_str();
  command->add_option("--method", o->method, "flux, none or chunked: whose parts are shown")->capture_default_str();
  command->add_flag("--json", o->json, "Prints one JSON object instead of text");
  command->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace

void add_simulate(CLI::App& app, Action& action) {
  CLI::App* simulate = app.add_subcommand(
      "simulate", "Simulates a model's step on 1 to 10,000 GPUs, from its operators' simulated times");
  simulate->require_subcommand(1);
  add_phase(*simulate, action, Phase::kTrain, "A step of training", 256);
  add_phase(*simulate, action, Phase::kPrefill, "The tokens of prompts", 8);
  add_phase(*simulate, action, Phase::kDecode, "One token more of each sequence", 64);
  auto json = std::make_shared<bool>(false);
  CLI::App* table =
      simulate->add_subcommand("table", "Speed-ups of two models on three clusters, beside the published");
  table->add_flag("--json", *json, "Prints one JSON object instead of text");
  table->callback([json, &action] { action = [json] { return print_model_table(*json), kOk; }; });
  add_simulate_nodes(*simulate, action);
}

}  // namespace flux::cli
