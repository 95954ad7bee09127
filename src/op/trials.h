#pragma once
// Operators of one problem, one for each plan, on the same operands: what tuning runs.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "flux/op.h"
#include "plan/problem.h"

namespace flux {

class Trials {
 public:
  /// Allocates this rank's operands where the world's operators take them, and fills them. Collective, as all calls.
  Trials(World& world, Problem const& problem);
  ~Trials();

  /// Makes the operator of this plan, if it is not there yet; false where there is none like it here, on every rank.
  /// All of them use the same buffers in turn.
  bool has(Plan const& plan);
  /// Enqueues, or on the host runs, a call of an operator that is there.
  void run(Plan const& plan, Stream stream);

  World& world() { return world_; }

 private:
  struct Operators;
  Tensor filled(int64_t rows, int64_t columns, DType dtype);
  Workspace const* workspace(MemoryNeed const& need);

  World& world_;
  Problem const problem_;
  std::vector<std::shared_ptr<std::byte>> memory_;
  Tensor x_, weight_, out_;
  MemoryNeed need_;  // of the workspace
  std::unique_ptr<Workspace> workspace_;
  std::map<std::string, std::unique_ptr<Operators>> made_;  // null: there is none
};

}  // namespace flux
