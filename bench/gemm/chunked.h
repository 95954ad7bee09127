#pragma once
// Medium-grained overlap, as Transformer Engine and PyTorch's asynchronous tensor parallelism do it: the GEMM cut into
// as many pieces as there are ranks, each by the best of cuBLASLt for its shape, copies of whole shards beside them.
#include <map>

#include "bench/gemm/cublaslt.h"
#include "bench/gemm/exchange.h"

namespace flux::bench {

class Chunked {
 public:
  /// `x`: of AG this rank's rows, of RS all. `weight`: where proposals are tried.
  Chunked(Exchange& exchange, GemmProblem const& problem, CublasLt& cublas, Tensor const& x, void const* weight,
          std::mt19937& random, Stream stream);

  /// AG: out [m, n of a rank]. RS: out [own rows, n].
  void run(void const* weight, Tensor const& out, Stream stream);

 private:
  void gather(void const* weight, Tensor const& out, Stream stream);
  void scatter(void const* weight, Tensor const& out, Stream stream);
  void multiply(int shard, void const* x, void const* weight, void* out) const;

  GemmProblem p_;
  Tensor x_;
  Exchange& exchange_;
  std::map<int64_t, Multiply> pieces_;  // by rows
};

}  // namespace flux::bench
