#pragma once
// The Hopper kernel, and its instances for one weight layout and element type.
#include "engine/sm90/engine.h"
#include "engine/variant.h"
#include "kernel/gemm_kernel.h"

namespace flux::sm90 {

template <class S>
__global__ void __launch_bounds__(S::config.threads(), 1)
    fused_gemm(__grid_constant__ Operands const operands, __grid_constant__ Schedule const order,
               __grid_constant__ AnyGate const gate, __grid_constant__ AnyRoute const route) {
  extern __shared__ __align__(1024) unsigned char shared[];
  static_assert(sizeof(Shared<S>) <= S::config.shared_bytes(S::kLayout));
  Engine<S> engine(operands, gate.watch(), *reinterpret_cast<Shared<S>*>(shared));
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

}  // namespace flux::sm90
