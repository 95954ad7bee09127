#include "gemm/problem.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

namespace flux::bench {

std::string GemmProblem::describe() const {
  return workload + " m=" + std::to_string(m) + " tp=" + std::to_string(tp) + " (" + std::to_string(m) + "x" +
         std::to_string(rank_n()) + "x" + std::to_string(rank_k()) + ")";
}

std::vector<GemmProblem> read_problems(std::string const& path, std::vector<std::string> const& tiers,
                                       std::vector<int> const& ranks, int64_t least_m) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorKind::kInvalid, "no workloads in " + path);
  std::vector<GemmProblem> problems;
  std::set<std::tuple<int64_t, int64_t, int64_t, DType, WeightLayout, std::string>> seen;
  auto const document = nlohmann::json::parse(file);
  for (auto const& w : document.at("workloads")) {
    std::string const tier = w.at("tier"), op = w.at("op");
    if (std::find(tiers.begin(), tiers.end(), tier) == tiers.end() || op == "gemm_ar") continue;
    for (std::string const dtype : w.at("dtype"))
      for (int const tp : w.at("tp"))
        for (int64_t const m : w.at("m")) {
          if (std::find(ranks.begin(), ranks.end(), tp) == ranks.end() || m < least_m) continue;
          GemmProblem const p{w.at("name"), tier, op, m, w.at("n"), w.at("k"), tp, parse_dtype(dtype),
                              parse_weight_layout(w.at("weight").get<std::string>()), w.at("epilogue")};
          if (seen.insert({m, p.rank_n(), p.rank_k(), p.dtype, p.layout, p.epilogue}).second) problems.push_back(p);
        }
  }
  return problems;
}

}  // namespace flux::bench
