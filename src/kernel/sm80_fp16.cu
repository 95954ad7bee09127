#include "kernel/sm80_kernel.h"

namespace flux::sm80 {

void list_fp16(Kernels& kernels) {
  list<WeightLayout::kOutIn, cutlass::half_t>(kernels, std::make_index_sequence<kConfigs>{});
}

}  // namespace flux::sm80
