#include <cuda_runtime.h>

#include <string>

#include "engine/sm80/config.h"
#include "engine/sm80/operands.h"
#include "kernel/gemm_kernel.h"

namespace flux::sm80 {
namespace {

void with_operands(GemmLaunch const& l, std::function<void(void*)> const& use) {
  require(l.route.kind != AnyRoute::Kind::kSum, "route=sum: the sm80 engine does not add at the owner; use route=push",
          ErrorKind::kUnsupported);
  Operands operands{};
  operands.a = l.a, operands.a_stride = l.a_stride;
  operands.b = l.weight.data, operands.b_stride = l.weight.stride;
  operands.c = l.c, operands.c_stride = l.c_stride;
  for (int rank = 0; rank < kMaxRanks; ++rank)
    require(aligned(operands.a.at(rank)) && aligned(operands.c.at(rank)),
            "addresses of rows and results are multiples of 16 bytes on a GPU");
  operands.k = l.k();
  operands.columns = static_cast<int>(l.columns());
  operands.up = static_cast<int>(l.columns());
  operands.epilogue = epilogue(l), operands.stamps = l.stamps;
  use(&operands);
}

}  // namespace

GemmKernel gemm_kernel(int row, DType dtype, WeightLayout layout) {
  Config const& config = kTable[row];
  return {instance<Kernels>(row, dtype, layout), config.threads(), config.shared_bytes(), config.blocks_of_processor(),
          with_operands};
}

}  // namespace flux::sm80
