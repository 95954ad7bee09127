#include "kernel/sm80_kernel.h"

namespace flux::sm80 {

void list_fp16_in_out(Kernels& kernels) {
  list<WeightLayout::kInOut, cutlass::half_t>(kernels, std::make_index_sequence<kConfigs>{});
}

}  // namespace flux::sm80
