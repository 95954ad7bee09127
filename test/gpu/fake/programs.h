#pragma once
// Programs on the fake GPU: those of operators and worlds in programs.cc, those of the bench in bench_programs.cc,
// over several nodes in node_programs.cc.
#include <cstdint>

#include "world/program.h"

namespace flux::test {

std::vector<Program> bench_programs();
std::vector<Program> node_programs();

/// Each rank on a GPU of its own, if there are as many; over nodes that this machine plays.
inline std::unique_ptr<World> world_on_gpu(double limit_seconds, int nodes = 1) {
  WorldOptions options;
  options.limit_seconds = limit_seconds, options.device = kGpuByRank, options.nodes = nodes;
  return World::processes(bootstrap_from_environment(), options);
}

inline Stream stream_number(intptr_t number) { return reinterpret_cast<Stream>(number); }

}  // namespace flux::test
