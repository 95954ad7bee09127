#pragma once
// The kernel for compute capability 8.0 and later.
#include "engine/sm80/engine.h"
#include "engine/variant.h"
#include "kernel/instances.h"

namespace flux::sm80 {

// fp8 is multiplied from 8.9 on; kernels for chips before are empty, and refused at the launch.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
template <class T>
inline constexpr bool runs_here = !std::is_same_v<T, cutlass::float_e4m3_t>;
#else
template <class T>
inline constexpr bool runs_here = true;
#endif

template <class S>
__global__ void __launch_bounds__(S::kThreads, S::config.blocks_of_processor())
    fused_gemm(__grid_constant__ Operands const operands, __grid_constant__ Schedule const order,
               __grid_constant__ AnyGate const gate, __grid_constant__ AnyRoute const route) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ Counts counts;
  if constexpr (runs_here<typename S::T>) {
    Engine<S> engine(operands, gate.watch(), shared, counts);
    run(engine, order, gate, route);
  }
}

struct Kernels {
  static constexpr size_t kRows = kConfigs;
  template <size_t kRow, WeightLayout kLayout, class T>
  static auto of() {
    return &fused_gemm<Shape<kTable[kRow], kLayout, T>>;
  }
};

}  // namespace flux::sm80
