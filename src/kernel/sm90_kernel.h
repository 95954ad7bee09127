#pragma once
// The Hopper kernel, and the array of its instances for one weight layout and element type.
#include "engine/sm90/engine.h"
#include "engine/variant.h"

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

using Kernels = void const* [kConfigs];

template <WeightLayout kLayout, class T, size_t... kRow>
void list(Kernels& kernels, std::index_sequence<kRow...>) {
  ((kernels[kRow] = reinterpret_cast<void const*>(&fused_gemm<Shape<kTable[kRow], kLayout, T>>)), ...);
}

// One translation unit each.
void list_bf16(Kernels& kernels);
void list_bf16_in_out(Kernels& kernels);
void list_fp16(Kernels& kernels);
void list_fp16_in_out(Kernels& kernels);

}  // namespace flux::sm90
