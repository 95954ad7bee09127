#pragma once
// The Hopper kernel.
#include "engine/sm90/engine.h"
#include "engine/variant.h"
#include "kernel/instances.h"

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

struct Kernels {
  static constexpr size_t kRows = kConfigs;
  template <size_t kRow, WeightLayout kLayout, class T>
  static auto of() {
    return &fused_gemm<Shape<kTable[kRow], kLayout, T>>;
  }
};

}  // namespace flux::sm90
