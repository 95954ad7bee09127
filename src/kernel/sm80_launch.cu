#include <cuda_runtime.h>

#include <cutlass/float8.h>

#include <string>

#include "engine/sm80/config.h"
#include "engine/sm80/operands.h"
#include "kernel/gemm_kernel.h"

namespace flux::sm80 {
namespace {

// See Loader::load_weights for the columns of a gated layer.
void set_steps(Operands& o, Config const& config, WeightLayout layout, bool gated) {
  int64_t const rows = config.rows_at_once(), half = config.warp_n() / 2, b_row = o.b_stride * 2;
  o.a_step = rows * o.a_stride * 2;
  if (layout == WeightLayout::kInOut) {
    o.b_step = config.threads() / (config.block_n / 8) * b_row, o.b_stage = config.block_k * b_row;
  } else {
    o.b_step = (gated && rows > half ? rows / 2 : rows) * b_row;
    o.b_step_up = gated ? (rows - half + o.up) * b_row : o.b_step;
    o.b_step_down = gated ? (rows - o.up) * b_row : o.b_step;
  }
}

void with_operands(GemmLaunch const& l, std::function<void(void*)> const& use) {
  require(l.route.kind != AnyRoute::Kind::kSum, "route=sum: the sm80 engine does not add at the owner; use route=push",
          ErrorKind::kUnsupported);
  Operands operands{};
  int64_t const together = 2 / size_of(l.weight.dtype);  // in 16 bits
  operands.a = l.a, operands.a_stride = l.a_stride / together;
  operands.b = l.weight.data, operands.b_stride = l.weight.stride / together;
  operands.c = l.c, operands.c_stride = l.c_stride;
  for (int rank = 0; rank < kMaxRanks; ++rank)
    require(aligned(operands.a.at(rank)) && aligned(operands.c.at(rank)),
            "addresses of rows and results are multiples of 16 bytes on a GPU");
  operands.k = l.k();
  operands.columns = static_cast<int>(l.columns());
  operands.up = static_cast<int>(l.columns());
  set_steps(operands, kTable[l.tile.row], l.layout, l.gated);
  operands.row_scales = static_cast<float const*>(l.scales.rows.data);
  operands.column_scales = static_cast<float const*>(l.scales.columns.data);
  operands.epilogue = epilogue(l), operands.stamps = l.stamps;
  use(&operands);
}

void const* instance_of(int row, DType dtype, WeightLayout layout) {
  static Instances const int8 = instances<Kernels, WeightLayout::kOutIn, int8_t>(),
                         fp8 = instances<Kernels, WeightLayout::kOutIn, cutlass::float_e4m3_t>();
  if (size_of(dtype) > 1) return instance<Kernels>(row, dtype, layout);
  return (dtype == DType::kI8 ? int8 : fp8)[row];
}

}  // namespace

GemmKernel gemm_kernel(int row, DType dtype, WeightLayout layout) {
  Config const& config = kTable[row];
  return {instance_of(row, dtype, layout), config.threads(), config.shared_bytes(), config.blocks_of_processor(),
          with_operands};
}

}  // namespace flux::sm80
