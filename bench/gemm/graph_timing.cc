#include "bench/gemm/graph_timing.h"

#include "bench/gemm/cuda.h"

namespace flux::bench {

CUstream_st* capture_stream() {
  static cudaStream_t const stream = [] {
    cudaStream_t made;
    must(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    return made;
  }();
  return stream;
}

void measure_graphs(std::vector<GpuMethod>& methods, int rounds, int repeat, std::mt19937& random, Turns const& turns,
                    Lockstep* ranks) {
  constexpr int64_t kLaunchNs = 100'000;  // longer than the host needs to launch a graph
  cudaStream_t const stream = capture_stream();
  std::vector<cudaGraphExec_t> graphs;  // [method][turn]
  for (GpuMethod const& method : methods)
    for (int turn = 0; turn < turns.count; ++turn) {
      turns.take(turn);
      cudaGraph_t graph;
      must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      for (int i = 0; i < repeat; ++i) method.run();
      must(cudaStreamEndCapture(stream, &graph));
      must(cudaGraphInstantiate(&graphs.emplace_back(), graph, 0));
      must(cudaGraphDestroy(graph));
    }
  turns.take(0);
  int turn = 0;
  time_rounds(
      methods, 2, rounds, repeat, stream, random,
      [&](size_t) {
        if (ranks) hold(kLaunchNs, stream);  // nobody's launch is late at the meeting
      },
      [&](size_t i) { must(cudaGraphLaunch(graphs[i * turns.count + turn++ % turns.count], stream)); }, ranks);
  for (cudaGraphExec_t graph : graphs) must(cudaGraphExecDestroy(graph));
}

}  // namespace flux::bench
