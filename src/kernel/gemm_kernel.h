#pragma once
// What an engine says of one of its kernels.
#include <functional>
#include <string>
#include <vector>

#include "engine/epilogue.h"
#include "kernel/gemm.h"

namespace flux {

struct GemmKernel {
  void const* function = nullptr;
  int threads = 0, shared_bytes = 0;
  int blocks_of_processor = 1;
  /// Works out the engine's own operands, the kernel's first parameter, and calls `use` with their address. Throws
  /// Error for a launch that this kernel cannot serve.
  void (*with_operands)(GemmLaunch const& launch, std::function<void(void*)> const& use) = nullptr;
};

/// An engine's kernels for one weight layout and element type, by row of its table.
using Instances = std::vector<void const*>;

/// Which of an engine's four lists: bf16, bf16 [in, out], fp16, fp16 [in, out].
constexpr int place_of(DType dtype, WeightLayout layout) {
  return (dtype == DType::kF16) * 2 + (layout == WeightLayout::kInOut);
}

namespace sm80 {
GemmKernel gemm_kernel(int row, DType dtype, WeightLayout layout);
}
namespace sm90 {
GemmKernel gemm_kernel(int row, DType dtype, WeightLayout layout);
}

/// Throws Error{kUnsupported} where this build has no kernels of the engine, kInvalid for a row that there is not.
GemmKernel gemm_kernel(TileRow const& tile, DType dtype, WeightLayout layout);

/// What the launch asks of accumulators before they leave.
Epilogue epilogue(GemmLaunch const& launch);

inline void require(bool ok, std::string const& message, ErrorKind kind = ErrorKind::kInvalid) {
  if (!ok) throw Error(kind, message);
}
inline bool aligned(void const* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

}  // namespace flux
