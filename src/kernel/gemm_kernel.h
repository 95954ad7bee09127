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

/// Which of an engine's lists: bf16, bf16 [in, out], fp16, fp16 [in, out], and of the sm80 engine int8, fp8.
inline constexpr int kPlaces = 6;
constexpr int place_of(DType dtype, WeightLayout layout) {
  if (size_of(dtype) == 1) return dtype == DType::kI8 ? 4 : 5;
  return (dtype == DType::kF16) * 2 + (layout == WeightLayout::kInOut);
}

/// An engine's kernels for one weight layout and element type, by row of its table: kernel/instances.h, a translation
/// unit each. `Kernels` is sm80::Kernels or sm90::Kernels, complete where they are compiled.
using Instances = std::vector<void const*>;
template <class Kernels, WeightLayout kLayout, class T>
Instances instances();

template <class Kernels>
void const* instance(int row, DType dtype, WeightLayout layout) {
  static Instances const all[] = {instances<Kernels, WeightLayout::kOutIn, cutlass::bfloat16_t>(),
                                  instances<Kernels, WeightLayout::kInOut, cutlass::bfloat16_t>(),
                                  instances<Kernels, WeightLayout::kOutIn, cutlass::half_t>(),
                                  instances<Kernels, WeightLayout::kInOut, cutlass::half_t>()};
  return all[place_of(dtype, layout)][row];
}

namespace sm80 {
struct Kernels;
GemmKernel gemm_kernel(int row, DType dtype, WeightLayout layout);
}  // namespace sm80
namespace sm90 {
struct Kernels;
GemmKernel gemm_kernel(int row, DType dtype, WeightLayout layout);
}  // namespace sm90

/// Throws Error{kUnsupported} where this build has no kernels of the engine, kInvalid for a row that there is not.
GemmKernel gemm_kernel(TileRow const& tile, DType dtype, WeightLayout layout);

/// What the launch asks of accumulators before they leave.
Epilogue epilogue(GemmLaunch const& launch);

inline void require(bool ok, std::string const& message, ErrorKind kind = ErrorKind::kInvalid) {
  if (!ok) throw Error(kind, message);
}
inline bool aligned(void const* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

}  // namespace flux
