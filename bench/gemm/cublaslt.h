#pragma once
// The best of cuBLASLt: 64 proposals asked for, a workspace of 64 MiB, every proposal timed. The library is opened at
// run time, so that nothing links to it.
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/gemm/problem.h"
#include "bench/gemm/timing.h"

struct CUstream_st;

namespace flux::bench {

/// out = x · weightᵀ wherever the three lie, enqueued.
using Multiply = std::function<void(void const* x, void const* weight, void* out)>;

class CublasLt {
 public:
  struct Proposal {
    std::string name;
    Multiply multiply;
  };

  /// Opens `path`, or libcublasLt.so.13 / .12 where the loader finds it. Throws Error{kUnsupported}.
  explicit CublasLt(std::string const& path);
  ~CublasLt();

  /// Times every proposal for y = x · weightᵀ (plain, no epilogue) and returns the fastest `count`, each as a method.
  /// `stream`: none, or capture_stream(), and then they are timed as graphs.
  std::vector<GpuMethod> best(GemmProblem const& problem, void const* x, void const* weight, void* out, int count,
                              std::mt19937& random, CUstream_st* stream = nullptr);
  /// The same as functions of where operands lie: at multiples of `alignment` bytes.
  std::vector<Proposal> fastest(GemmProblem const& problem, void const* x, void const* weight, void* out, int count,
                                std::mt19937& random, CUstream_st* stream = nullptr, uint32_t alignment = 256);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flux::bench
