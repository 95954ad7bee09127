#pragma once
// Scenarios: one operator on one problem, run on every rank of a world and compared with a plain product in fp64.
// Inputs are small integers, so sums are exact in any order and bytes can be compared. Every engine and world runs the
// same list.
#include <cstdint>
#include <string>
#include <vector>

#include "flux/op.h"

namespace flux::test {

struct Scenario {
  Op op = Op::kAllGatherGemm;
  int64_t m = 0, n = 0, k = 0;
  int ranks = 1, nodes = 1;
  DType dtype = DType::kF32;
  WeightLayout layout = WeightLayout::kOutIn;
  Plan plan;
  Activation activation = Activation::kNone;
  bool gated = false, bias = false, residual = false, norm = false, gathered = false;
  bool scaled = false;   // of int8 and fp8: by powers of two, so that bytes stay exact
  bool ordered = false;  // partial sums (fp32) that round, so that only the promised order gives these bytes
  int slow = -1;         // this rank comes late to every call
  bool varied = false;   // each call has a number of rows of its own, up to m
  int calls = 1;

  std::string describe() const;
};

/// Every operator over ragged shapes, dtypes, plans and epilogues.
std::vector<Scenario> all_scenarios();
/// Those that several nodes can do, on as many ranks or a few more so that nodes are alike.
std::vector<Scenario> scenarios_of(int nodes);

/// Where operators find their tensors: on the host where the scenario made them, or copied to a GPU.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual Tensor place(Tensor const& host) { return host; }
  /// Brings back what the calls so far wrote to `placed`.
  virtual void fetch(Tensor const& /*placed*/, Tensor const& /*host*/) {}
  virtual Stream stream() { return nullptr; }
};

/// Runs it as rank world.rank(). Returns an empty string, or what differed first.
std::string run_scenario(World& world, Scenario const& scenario, Memory& memory);
inline std::string run_scenario(World& world, Scenario const& scenario) {
  Memory host;
  return run_scenario(world, scenario, host);
}

/// Runs it with ranks as threads; every rank's failure, a line each.
std::string run_on_threads(Scenario const& scenario, WorldOptions const& options);

}  // namespace flux::test
