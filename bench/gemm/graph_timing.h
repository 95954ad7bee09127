#pragma once
// Methods captured as CUDA graphs and replayed: what is timed has no launch latency of the host in it.
#include <random>
#include <vector>

#include "bench/gemm/timing.h"

struct CUstream_st;

namespace flux::bench {

/// The stream that methods enqueue on while they are captured.
CUstream_st* capture_stream();

/// As measure(), each method a graph of `repeat` runs; where there are turns, a graph for each.
void measure_graphs(std::vector<GpuMethod>& methods, int rounds, int repeat, std::mt19937& random,
                    Turns const& turns = {}, Lockstep* ranks = nullptr);

}  // namespace flux::bench
