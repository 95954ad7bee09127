#include "bench/gemm/graph_timing.h"

#include <algorithm>

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

void measure_graphs(std::vector<GpuMethod>& methods, int rounds, int repeat, std::mt19937& random) {
  cudaStream_t const stream = capture_stream();
  std::vector<cudaGraphExec_t> graphs;
  for (GpuMethod const& method : methods) {
    cudaGraph_t graph;
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < repeat; ++i) method.run();
    must(cudaStreamEndCapture(stream, &graph));
    must(cudaGraphInstantiate(&graphs.emplace_back(), graph, 0));
    must(cudaGraphDestroy(graph));
  }
  cudaEvent_t begin, end;
  must(cudaEventCreate(&begin));
  must(cudaEventCreate(&end));
  std::vector<size_t> order(methods.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (int round = -2; round < rounds; ++round) {  // the first ones warm up
    std::shuffle(order.begin(), order.end(), random);
    for (size_t const i : order) {
      must(cudaEventRecord(begin, stream));
      must(cudaGraphLaunch(graphs[i], stream));
      must(cudaEventRecord(end, stream));
      must(cudaEventSynchronize(end));
      float ms = 0;
      must(cudaEventElapsedTime(&ms, begin, end));
      if (round >= 0) methods[i].us.push_back(1e3 * ms / repeat);
    }
  }
  for (cudaGraphExec_t graph : graphs) must(cudaGraphExecDestroy(graph));
  must(cudaEventDestroy(begin));
  must(cudaEventDestroy(end));
}

}  // namespace flux::bench
