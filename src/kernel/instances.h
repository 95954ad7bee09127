#pragma once
// The instances of an engine's kernel, for those who compile them. `Kernels` has kRows and of<row, layout, type>().
#include <utility>

#include "kernel/gemm_kernel.h"

namespace flux {

template <class Kernels, WeightLayout kLayout, class T, size_t... kRow>
Instances instances(std::index_sequence<kRow...>) {
  return {reinterpret_cast<void const*>(Kernels::template of<kRow, kLayout, T>())...};
}

template <class Kernels, WeightLayout kLayout, class T>
Instances instances() {
  return instances<Kernels, kLayout, T>(std::make_index_sequence<Kernels::kRows>{});
}

}  // namespace flux
