#include "bench/workloads.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "io/json_file.h"

namespace flux::bench {
namespace {

// "bias_gelu", "gated_silu", "gelu", "none": what the file calls an epilogue.
void set_epilogue(Problem& problem, std::string text) {
  auto strip = [&](std::string_view prefix) {
    bool const there = text.starts_with(prefix);
    if (there) text.erase(0, prefix.size());
    return there;
  };
  problem.bias = strip("bias_");
  problem.gated = strip("gated_");
  problem.activation = parse_activation(text);
}

}  // namespace

std::filesystem::path workload_file() {
  auto const installed = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../share/flux/workloads.json";
  return std::filesystem::exists(installed) ? installed : std::filesystem::path(FLUX_WORKLOADS);
}

std::vector<Workload> read_workloads(std::filesystem::path const& file, std::string const& suite) {
  auto const json = read_json(file);
  std::vector<Workload> list;
  std::set<std::string> suites;
  try {
    for (auto const& w : json.at("workloads")) {
      auto const tier = w.at("tier").get<std::string>();
      suites.insert(tier);
      if (tier != suite) continue;
      for (int64_t m : w.at("m").get<std::vector<int64_t>>())
        for (int tp : w.at("tp").get<std::vector<int>>())
          for (auto const& dtype : w.at("dtype").get<std::vector<std::string>>()) {
            Workload one{w.at("name"), w.at("why"), w.at("epilogue"), {}, tp};
            one.problem.op = parse_op(w.at("op").get<std::string>());
            one.problem.m = m, one.problem.n = w.at("n"), one.problem.k = w.at("k");
            one.problem.dtype = parse_dtype(dtype);
            one.problem.layout = parse_weight_layout(w.at("weight").get<std::string>());
            if (w.contains("plans")) one.plans = w["plans"].get<std::vector<std::string>>();
            for (auto const& plan : one.plans) parse_plan(plan);
            set_epilogue(one.problem, one.epilogue);
            check_problem(one.problem);
            list.push_back(one);
          }
    }
  } catch (nlohmann::json::exception const& e) {
    throw Error(ErrorKind::kInvalid, fmt::format("{} is no workload file: {}", file.string(), e.what()));
  }
  if (list.empty())
    throw Error(ErrorKind::kInvalid,
                fmt::format("suite '{}' is not in {}; there are {}", suite, file.string(), fmt::join(suites, ", ")));
  return list;
}

}  // namespace flux::bench
