#pragma once
// The kernel for compute capability 8.0 and later, and its instances for one weight layout and type.
#include "engine/sm80/engine.h"
#include "engine/variant.h"
#include "kernel/gemm_kernel.h"

namespace flux::sm80 {

template <class S>
__global__ void __launch_bounds__(S::kThreads, S::config.blocks_of_processor())
    fused_gemm(__grid_constant__ Operands const operands, __grid_constant__ Schedule const order,
               __grid_constant__ AnyGate const gate, __grid_constant__ AnyRoute const route) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ Counts counts;
  Engine<S> engine(operands, gate.watch(), shared, counts);
  run(engine, order, gate, route);
}

template <WeightLayout kLayout, class T, size_t... kRow>
Instances instances(std::index_sequence<kRow...>) {
  return {reinterpret_cast<void const*>(&fused_gemm<Shape<kTable[kRow], kLayout, T>>)...};
}
template <WeightLayout kLayout, class T>
Instances instances() {
  return instances<kLayout, T>(std::make_index_sequence<kConfigs>{});
}

// One translation unit each.
Instances bf16();
Instances bf16_in_out();
Instances fp16();
Instances fp16_in_out();

}  // namespace flux::sm80
