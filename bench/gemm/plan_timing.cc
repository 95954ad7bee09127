#include "bench/gemm/plan_timing.h"

#include "bench/gemm/graph_timing.h"
#include "op/tune_operator.h"

namespace flux::bench {
namespace {

class GraphTiming final : public PlanTiming {
 public:
  GraphTiming(World& world, Problem const& problem) : trials_(world, problem) {}

  std::optional<double> time_us(Plan const& plan) override {
    if (!trials_.has(plan)) return {};
    std::vector<GpuMethod> methods = {{"plan", [&] { trials_.run(plan, capture_stream()); }, {}}};
    measure_graphs(methods, 1, 1, random_);
    trials_.world().check();
    return slowest_us(trials_.world(), methods[0].us[0]);
  }

 private:
  Trials trials_;
  std::mt19937 random_{1};  // of one method there is no order
};

}  // namespace

std::unique_ptr<PlanTiming> graph_timing_of_plans(World& world, Problem const& problem) {
  return std::make_unique<GraphTiming>(world, problem);
}

}  // namespace flux::bench
