#pragma once
// Programs on the fake GPU: those of operators and worlds in programs.cc, those of the bench in bench_programs.cc.
#include <cstdint>

#include "world/program.h"

namespace flux::test {

std::vector<Program> bench_programs();

/// Each rank on a GPU of its own, if there are as many.
inline std::unique_ptr<World> world_on_gpu(double limit_seconds) {
  WorldOptions options;
  options.limit_seconds = limit_seconds, options.device = kGpuByRank;
  return World::processes(bootstrap_from_environment(), options);
}

inline Stream stream_number(intptr_t number) { return reinterpret_cast<Stream>(number); }

}  // namespace flux::test
