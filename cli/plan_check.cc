#include "cli/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "bench/workloads.h"
#include "flux/error.h"
#include "plan/simulate.h"

namespace flux::cli {
namespace {

// The model of the machine a row was measured on, by what the file says of it: an H200 multiplies by its own engine.
Machine const* machine_of(ResultFile const& file, ResultRow const& row) {
  std::string const gpu = file.machine.gpu.value_or("");
  std::string wanted;
  if (gpu.find("H200") != gpu.npos) wanted = row.link == "pcie" ? "h200-pcie" : "h200";
  if (row.plan.value_or("").find("sm80") != std::string::npos) return nullptr;
  bool const known = row.link == "pcie" || row.link == "nvlink" || row.op == "gemm";
  for (Machine const& machine : named_machines())
    if (known && machine.name == wanted) return &machine;
  return nullptr;
}

// A GEMM alone has the shape of its workload's operator on one rank.
std::map<std::string, Op> operators_of_workloads() {
  std::map<std::string, Op> ops;
  for (char const* tier : {"core", "extended", "edge", "decode"})
    for (auto const& w : bench::read_workloads(bench::workload_file(), tier)) ops[w.name] = w.problem.op;
  return ops;
}

std::optional<double> predict(ResultRow const& row, Machine const& machine, std::map<std::string, Op> const& ops) {
  Problem p;
  p.m = row.m, p.n = row.n, p.k = row.k, p.ranks = static_cast<int>(row.tp), p.dtype = parse_dtype(row.dtype);
  p.layout = parse_weight_layout(row.weight), p.gated = row.epilogue.starts_with("gated");
  if (row.op == "gemm") {
    auto const op = ops.find(row.workload);
    if (op == ops.end()) return {};
    p.op = op->second;
    TileRow const shape = best_shape(p.m, p.local_n(), depth(p, machine), p.layout, p.gated, machine);
    double const alone = cycles(shape, p.m, p.local_n(), depth(p, machine), p.layout, machine);
    return machine.gemm_us + alone / clock_mhz(machine, busy(alone / machine.clock_mhz, 0));
  }
  if (row.op != "ag_gemm" && row.op != "gemm_rs" && row.op != "gemm_ar") return {};
  p.op = parse_op(row.op);
  if (row.method == "none") {  // a mirror has no collective library
    Parts const alone = parts(p, machine);
    // A row that does not say what carried its bytes is from before a kernel was among what could.
    return row.world == "mirror" ? alone.gemm_us + (row.comm_by ? alone.comm_us : alone.copied_us) : alone.none_us;
  }
  std::string const line = row.plan.value_or("");
  size_t const space = line.find(' ');  // behind the engine's name
  Plan base;
  if (p.op == Op::kGemmAllReduce && row.world == "mirror") base.shots = Shots::kOneShot;
  if (line.find("copies=") == line.npos) base.copy_blocks = 0;  // before blocks could carry anything
  Plan const plan = parse_plan(space == line.npos ? "" : line.substr(space), base);
  try {
    return simulate(p, plan, machine).total_us;
  } catch (Error const& error) {
    if (error.kind() == ErrorKind::kUnsupported) return {};  // measured, but not simulated yet
    throw;
  }
}

}  // namespace

double PlanCheck::quantile(double q) const {
  std::vector<double> errors;
  for (auto const& checked : rows) errors.push_back(std::abs(checked.error()));
  std::sort(errors.begin(), errors.end());
  return errors.empty() ? 0 : errors[static_cast<size_t>(std::lround(q * static_cast<double>(errors.size() - 1)))];
}

PlanCheck check_plans(std::vector<std::filesystem::path> const& files) {
  PlanCheck check;
  auto const ops = operators_of_workloads();
  for (auto const& path : files) {
    ResultFile const file = read_result(path);
    for (ResultRow const& row : file.rows) {
      if ((row.method != "flux" && row.method != "none") || row.variant == "timeline") continue;  // slowed by recording
      Machine const* machine = machine_of(file, row);
      std::optional<double> predicted;
      if (machine) predicted = predict(row, *machine, ops);
      if (predicted)
        check.rows.push_back({row, machine->name, *predicted});
      else
        ++check.left_out;
    }
  }
  if (check.rows.empty())
    throw Error(ErrorKind::kInvalid,
                "no row of these files has a model; rows of flux by the sm90 engine and of none on an H200 have one");
  return check;
}

nlohmann::json to_json(PlanCheck const& check) {
  auto rows = nlohmann::json::array();
  for (auto const& [row, machine, predicted] : check.rows)
    rows.push_back({{"workload", row.workload},
                    {"op", row.op},
                    {"m", row.m},
                    {"tp", row.tp},
                    {"method", row.method},
                    {"timing", row.timing},
                    {"machine", machine},
                    {"measured_us", row.total_us},
                    {"predicted_us", predicted},
                    {"error", predicted / row.total_us - 1}});
  return {{"rows", rows},
          {"left_out", check.left_out},
          {"median", check.quantile(0.5)},
          {"p90", check.quantile(0.9)},
          {"worst", check.quantile(1)}};
}

void print(PlanCheck const& check) {
  fmt::print("{:<20} {:<8} {:>6} {:>3} {:<6} {:<6} {:<10} {:>11} {:>11} {:>7}\n", "workload", "op", "m", "tp", "method",
             "timing", "machine", "measured us", "predicted", "error");
  for (auto const& [row, machine, predicted] : check.rows)
    fmt::print("{:<20} {:<8} {:>6} {:>3} {:<6} {:<6} {:<10} {:>11.1f} {:>11.1f} {:>6.1f}%\n", row.workload, row.op,
               row.m, row.tp, row.method, row.timing, machine, row.total_us, predicted,
               100 * (predicted / row.total_us - 1));
  fmt::print("{} rows, {} left out; error: median {:.1f} %, 90th percentile {:.1f} %, worst {:.1f} %\n",
             check.rows.size(), check.left_out, 100 * check.quantile(0.5), 100 * check.quantile(0.9),
             100 * check.quantile(1));
}

}  // namespace flux::cli
