// CUTLASS 2.x: mma.sync fed by cp.async, as on compute capability 8.0; every later chip runs it too.
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/device/gemm_universal.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle.h>

#include <memory>

#include "bench/gemm/stock.h"
#include "flux/error.h"

namespace flux::bench {
namespace {

using Bf16 = cutlass::bfloat16_t;
using Rows = cutlass::layout::RowMajor;
using Columns = cutlass::layout::ColumnMajor;
constexpr int kAligned = 8;  // elements in the 16 bytes that one thread moves at a time

/// Rounds the sums and stores them: no factors, and no old values of y to read.
using Round = cutlass::epilogue::thread::LinearCombination<Bf16, kAligned, float, float,
                                                           cutlass::epilogue::thread::ScaleType::Nothing>;

template <int kM, int kN, int kK>
using Shape = cutlass::gemm::GemmShape<kM, kN, kK>;

/// `kBand` tiles side by side along n go first, then as many one tile further along m; a narrow n narrows the band.
template <class Tile, class WarpTile, int kStages, int kBand>
void add(std::vector<GpuMethod>& methods, GemmProblem const& p, void const* x, void const* weight, void* out) {
  using Device =
      cutlass::gemm::device::GemmUniversal<Bf16, Rows, Bf16, Columns, Bf16, Rows, float, cutlass::arch::OpClassTensorOp,
                                           cutlass::arch::Sm80, Tile, WarpTile, Shape<16, 8, 16>, Round,
                                           cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<kBand>, kStages,
                                           kAligned, kAligned>;
  int const m = static_cast<int>(p.m), n = static_cast<int>(p.rank_n()), k = static_cast<int>(p.rank_k());
  // One GEMM, so strides between GEMMs are 0; x and the weight are k apart from row to row, y is n apart.
  typename Device::Arguments const arguments(cutlass::gemm::GemmUniversalMode::kGemm, {m, n, k}, 1, {}, x, weight,
                                             nullptr, out, 0, 0, 0, 0, k, k, n, n);
  auto device = std::make_shared<Device>();
  // Without split-k there is no workspace.
  if (device->can_implement(arguments) != cutlass::Status::kSuccess ||
      device->initialize(arguments) != cutlass::Status::kSuccess)
    return;
  methods.push_back({"cutlass mma.sync " + std::to_string(Tile::kM) + "x" + std::to_string(Tile::kN) + "x" +
                         std::to_string(Tile::kK) + " stages=" + std::to_string(kStages) +
                         " swizzle=" + std::to_string(kBand),
                     [device] {
                       if (device->run() != cutlass::Status::kSuccess)
                         throw Error(ErrorKind::kDevice, "stock CUTLASS did not run");
                     },
                     {}});
}

template <class Tile, class WarpTile, int kStages, class... Operands>
void add_both(std::vector<GpuMethod>& methods, Operands const&... operands) {
  add<Tile, WarpTile, kStages, 4>(methods, operands...);
  add<Tile, WarpTile, kStages, 8>(methods, operands...);
}

}  // namespace

std::vector<GpuMethod> stock_mma_sync(GemmProblem const& p, void const* x, void const* weight, void* out) {
  std::vector<GpuMethod> methods;
  if (p.layout != WeightLayout::kOutIn || p.dtype != DType::kBF16) return methods;
  add_both<Shape<128, 256, 32>, Shape<64, 64, 32>, 3>(methods, p, x, weight, out);
  add_both<Shape<128, 256, 64>, Shape<64, 64, 64>, 3>(methods, p, x, weight, out);
  add_both<Shape<256, 128, 32>, Shape<64, 64, 32>, 3>(methods, p, x, weight, out);
  add_both<Shape<128, 128, 32>, Shape<64, 64, 32>, 4>(methods, p, x, weight, out);
  add_both<Shape<128, 128, 32>, Shape<64, 64, 32>, 5>(methods, p, x, weight, out);
  add_both<Shape<128, 128, 64>, Shape<64, 64, 64>, 3>(methods, p, x, weight, out);
  add_both<Shape<128, 64, 64>, Shape<64, 32, 64>, 4>(methods, p, x, weight, out);
  add_both<Shape<64, 64, 64>, Shape<32, 32, 64>, 6>(methods, p, x, weight, out);
  return methods;
}

}  // namespace flux::bench
