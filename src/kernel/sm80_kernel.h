#pragma once
// The kernel for compute capability 8.0 and later, and the array of its instances for one weight layout and type.
#include "engine/sm80/engine.h"
#include "engine/variant.h"
#include "kernel/gemm.h"

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

}  // namespace flux::sm80
