#include "cli/simulate_nodes.h"

#include <fmt/format.h>

#include "plan/methods.h"

namespace flux::cli {
namespace {

// The speed-ups over PyTorch and E of arXiv 2406.06858 for 16 ranks on two nodes at m = 8192.
struct Published {
  char const* machine;
  double speed_up, efficiency;
};
constexpr Published kPublished[] = {{"a100-pcie", 1.32, 0.18}, {"a100-sxm", 1.57, 0.74}, {"h800", 1.55, 0.56}};
constexpr int64_t kRows[] = {512, 1024, 2048, 4096, 8192, 16384};

// GPT-3's MLP: AG+GEMM, then GEMM+RS.
struct Mlp {
  double none_us = 0, flux_us = 0, gemm_us = 0;
  double speed_up() const { return none_us / flux_us; }
  double efficiency() const { return 1 - (flux_us - gemm_us) / (none_us - gemm_us); }
};

Mlp mlp(int64_t m, int ranks, int nodes, Costs& costs) {
  Mlp sum;
  for (Op op : {Op::kAllGatherGemm, Op::kGemmReduceScatter}) {
    bool const gathers = op == Op::kAllGatherGemm;
    Problem p{op, m, gathers ? 49152 : 12288, gathers ? 12288 : 49152, ranks};
    p.nodes = nodes;
    OperatorCost const fused = costs.of(p, Method::kFlux);
    sum.none_us += costs.of(p, Method::kNone).total_us, sum.flux_us += fused.total_us, sum.gemm_us += fused.gemm_us;
  }
  return sum;
}

int run(std::vector<std::string> const& machines, bool json) {
  auto rows = nlohmann::ordered_json::array();
  if (!json)
    fmt::print(
        "GPT-3 MLP, AG+GEMM and GEMM+RS, ms; one node and two, `none`: one after the other\n{:<10} {:>6} {:>9} {:>9} "
        "{:>10} {:>10} {:>9} {:>6} {:>14}\n",
        "machine", "m", "one none", "one flux", "two none", "two flux", "speed-up", "E", "two over one");
  for (std::string const& name : machines) {
    Costs costs(find_machine(name));
    int const of_node = costs.machine().node_ranks;
    for (int64_t m : kRows) {
      Mlp const one = mlp(m, of_node, 1, costs), two = mlp(m, 2 * of_node, 2, costs);
      double const gain = one.flux_us / two.flux_us;
      rows.push_back({{"machine", name},
                      {"m", m},
                      {"one_none_us", one.none_us},
                      {"one_flux_us", one.flux_us},
                      {"two_none_us", two.none_us},
                      {"two_flux_us", two.flux_us},
                      {"speed_up", two.speed_up()},
                      {"efficiency", two.efficiency()},
                      {"two_over_one", gain},
                      {"pays", gain > 1}});
      for (Published const& p : kPublished)
        if (p.machine == name && m == 8192)
          rows.back()["published_speed_up"] = p.speed_up, rows.back()["published_efficiency"] = p.efficiency;
      if (!json)
        fmt::print("{:<10} {:>6} {:>9.3f} {:>9.3f} {:>10.3f} {:>10.3f} {:>9.2f} {:>6.2f} {:>7.2f} {:>6}{}\n", name, m,
                   one.none_us / 1e3, one.flux_us / 1e3, two.none_us / 1e3, two.flux_us / 1e3, two.speed_up(),
                   two.efficiency(), gain, gain > 1 ? "pays" : "loses",
                   rows.back().contains("published_speed_up")
                       ? fmt::format("  published {:.2f}, E {:.2f}", rows.back()["published_speed_up"].get<double>(),
                                     rows.back()["published_efficiency"].get<double>())
                       : "");
    }
  }
  if (json) fmt::print("{}\n", nlohmann::ordered_json{{"rows", rows}}.dump(2));
  return kOk;
}

}  // namespace

void add_simulate_nodes(CLI::App& simulate, Action& action) {
  struct Options {
    std::vector<std::string> machines;
    bool json = false;
  };
  auto o = std::make_shared<Options>();
  for (Published const& p : kPublished) o->machines.push_back(p.machine);
  CLI::App* nodes = simulate.add_subcommand(
      "nodes", "One node against two, m by m: where tensor parallelism over both pays; beside the published");
  nodes->add_option("--machine", o->machines, "Named, or files; may be repeated")->capture_default_str();
  nodes->add_flag("--json", o->json, "Prints one JSON object instead of text");
  nodes->callback([o, &action] { action = [o] { return run(o->machines, o->json); }; });
}

}  // namespace flux::cli
