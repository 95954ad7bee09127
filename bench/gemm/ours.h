#pragma once
// Our kernel as methods of the GEMM benchmark.
#include "bench/gemm/cuda.h"
#include "bench/gemm/problem.h"
#include "kernel/sm90.h"

namespace flux::bench {

/// Operands of one problem on the GPU.
struct GemmBuffers {
  Buffer x, weight, bias, out, words, counts;
  explicit GemmBuffers(GemmProblem const& problem);
};

/// The plain GEMM: gate open, results stay.
sm90::Launch plain_launch(GemmProblem const& problem, GemmBuffers const& buffers, int row, int band);

/// The fused kernel of the problem's operator with nothing to wait for: all words of AG+GEMM are set, the slots of
/// GEMM+RS lie on this GPU, tiles come in rank 0's order.
sm90::Launch open_launch(GemmProblem const& problem, GemmBuffers const& buffers, int row, int band);

}  // namespace flux::bench
