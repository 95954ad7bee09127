#pragma once
// The time of a whole model's step: its operators as simulated, the rest as docs/simulator.md says.
#include <string>
#include <vector>

#include "plan/methods.h"
#include "plan/transformer.h"

namespace flux {

enum class Phase { kTrain, kPrefill, kDecode };
std::string_view name(Phase phase);

struct StepProblem {
  Phase phase = Phase::kTrain;
  Transformer model;
  int tp = 8, pp = 1, dp = 1;
  int nodes = 0;             ///< that the ranks of a layer are on; 0: as few as the machine's nodes hold
  int64_t batch = 0;         ///< sequences: of all replicas in training, of one otherwise
  int64_t micro = 1;         ///< training: sequences that go through the pipeline together
  int64_t seq = 2048;        ///< tokens of a sequence; decoding: those that came before
  double network_gbps = 25;  ///< between nodes, a GPU, 10^9 bytes/s
  int64_t gpus() const { return int64_t{1} * tp * pp * dp; }
};
/// Throws Error{kInvalid} for what does not divide or is out of range.
void require_step(StepProblem const& problem);

struct StepPart {
  std::string name;
  double us = 0;
};
struct Step {
  std::vector<StepPart> parts;  ///< they add up to the step
  double tp_us = 0;             ///< of it, what tensor-parallel communication adds
  double total_us() const;
  double tp_share() const { return tp_us / total_us(); }
};

Step simulate_step(StepProblem const& problem, Method method, Costs& costs);

}  // namespace flux
