#include "kernel/sm80_kernel.h"

namespace flux::sm80 {

void list_bf16(Kernels& kernels) {
  list<WeightLayout::kOutIn, cutlass::bfloat16_t>(kernels, std::make_index_sequence<kConfigs>{});
}

}  // namespace flux::sm80
