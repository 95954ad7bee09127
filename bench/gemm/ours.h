#pragma once
// Our kernel as methods of the GEMM benchmark.
#include "bench/gemm/cuda.h"
#include "bench/gemm/problem.h"
#include "kernel/gemm.h"

namespace flux::bench {

/// Operands of one problem on the GPU.
struct GemmBuffers {
  Buffer x, weight, bias, out, words, counts;
  explicit GemmBuffers(GemmProblem const& problem);
};

/// The plain GEMM: gate open, results stay.
GemmLaunch plain_launch(GemmProblem const& problem, GemmBuffers const& buffers, TileRow const& tile, int band);

/// The fused kernel of the problem's operator with nothing to wait for: all words of AG+GEMM are set, the slots of
/// GEMM+RS lie on this GPU, tiles come in rank 0's order.
GemmLaunch open_launch(GemmProblem const& problem, GemmBuffers const& buffers, TileRow const& tile, int band);

}  // namespace flux::bench
