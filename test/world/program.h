#pragma once
// What the ranks of a world do in a test: programs by name, so that ranks can be threads, processes of our launcher or
// processes of mpirun.
#include <functional>
#include <string>
#include <vector>

#include "flux/op.h"

namespace flux::test {

struct Program {
  std::string name;
  int ranks;
  double limit_seconds;
  /// Runs on every rank. Throws std::runtime_error where a result is wrong.
  std::function<void(World&)> body;
  int device = kHostEngine;
  double grace_seconds = 1;  // how long the others may still run after a rank failed
  int nodes = 0;             // played by this machine
};

/// Those of the room that this is compiled for.
std::vector<Program> const& programs();
Program const& program(std::string const& name);

/// How one rank ended: its exit code, what its error said, when it ended after the ranks were started.
struct Ending {
  int code = -1;
  ErrorKind kind = ErrorKind::kInternal;
  std::string said;
  double seconds = 0;
};
enum Code { kFine = 0, kWrong = 1, kRaised = 3 };

/// What `status` says of an mpirun that had to be ended from outside.
inline constexpr int kHung = -1;

/// Runs the program on each way of being a rank; one ending a rank. `status` receives what the launcher returned.
std::vector<Ending> run_as_threads(std::string const& name);
std::vector<Ending> run_as_processes(std::string const& name, int* status = nullptr);
std::vector<Ending> run_under_mpirun(std::string const& name, int* status);

/// The rank's own part of the latter two: what main does for `--program NAME`.
int run_as_rank(std::string const& name);

/// One small call, the same on all ranks: GEMM+RS of m rows, checked. `depth`: k of each rank.
struct SmallCall {
  World& world;
  GemmReduceScatter op;
  int64_t n;
  SmallCall(World& world, int64_t max_m, int64_t n = 16, Plan const& plan = {});
  void run(int64_t m, int seed = 0);
};

}  // namespace flux::test
