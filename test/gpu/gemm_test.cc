// The GEMM kernels alone: every row of both engines' tables, weight layout, dtype and epilogue against a plain product
// in fp64.
#include <cmath>

#include "bench/tolerance.h"
#include "gpu/device.h"
#include "kernel/gemm.h"

namespace flux::test {
namespace {

using Gemm = OnHopper;

struct Case {
  int row;
  DType dtype;
  WeightLayout layout;
  int64_t m, n, k;
  bool whole = true;  // small whole numbers: every byte must be right
  Activation activation = Activation::kNone;
  bool gated = false, bias = false;
  int band = 4, blocks = 0;

  std::string describe() const {
    TileRow const tile = gpu_tile(row);
    return std::string(tile.engine == EngineKind::kSm90 ? "sm90" : "sm80") + " row " + std::to_string(tile.row) + " (" +
           std::to_string(tile.tile_m) + "x" + std::to_string(tile.tile_n) + ") " + std::string(name(dtype)) + " " +
           std::string(name(layout)) + " " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
           " " + std::string(name(activation)) + (gated ? " gated" : "") + (bias ? " bias" : "");
  }
};

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone: return x;
    case Activation::kRelu: return x > 0 ? x : 0;
    case Activation::kGelu: return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::kGeluTanh: return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    case Activation::kQuickGelu: return x / (1 + std::exp(-1.702 * x));
    case Activation::kSilu: return x / (1 + std::exp(-x));
  }
  return x;
}

/// The error of one launch; 0 means that every byte is right.
double run_case(Case const& c) {
  std::mt19937 random(static_cast<unsigned>(c.m * 31 + c.n * 7 + c.k + c.row));
  bool const out_in = c.layout == WeightLayout::kOutIn;
  int64_t const columns = c.gated ? c.n / 2 : c.n;
  DeviceMatrix x(c.dtype, c.m, c.k), w(c.dtype, out_in ? c.n : c.k, out_in ? c.k : c.n), bias(c.dtype, 1, c.n),
      y(c.dtype, c.m, columns);
  for (DeviceMatrix* matrix : {&x, &w, &bias}) matrix->fill(random, c.whole);
  y.poison();

  TileRow const tile = gpu_tile(c.row);
  GemmLaunch l;
  l.tile = tile;
  l.a.base[0] = x.bytes.as(), l.a_stride = c.k;
  l.weight = w.tensor(), l.layout = c.layout;
  l.c.base[0] = y.bytes.as(), l.c_stride = columns;
  if (c.bias) l.bias = bias.tensor();
  l.activation = c.activation, l.gated = c.gated;
  l.order = arrange(Order::kNaive, Tiling::kAcross, {c.m, 1, 1}, tile.tile_m, tile.tiles_n(c.n), c.band, 0);
  l.gate = Open{0, c.k};
  l.route = Keep{0, c.m}, l.processors = c.blocks;
  enqueue_gemm(l, nullptr);
  must(cudaDeviceSynchronize());
  y.download();

  Reference sums = out_in ? Reference(x.values() * w.values().transpose()) : Reference(x.values() * w.values());
  if (c.bias) sums.rowwise() += bias.values().row(0);
  Reference result(c.m, columns);
  for (int64_t i = 0; i < c.m; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      result(i, j) = activate(c.activation, sums(i, j));
      if (c.gated) result(i, j) *= sums(i, columns + j);
    }
  return relative_error(y.values(), result);
}

TEST_F(Gemm, EveryRowIsExactOnWholeNumbers) {
  for (int row = 0; row < kGpuTiles; ++row)
    for (DType dtype : {DType::kBF16, DType::kF16})
      for (WeightLayout layout : {WeightLayout::kOutIn, WeightLayout::kInOut})
        for (auto [m, n, k] : {std::array<int64_t, 3>{1, 8, 8}, {65, 264, 200}, {300, 520, 72}, {513, 1032, 328}}) {
          Case const c{row, dtype, layout, m, n, k};
          EXPECT_EQ(run_case(c), 0) << c.describe();
        }
}

TEST_F(Gemm, ManyTilesABlock) {
  for (int row = 0; row < kGpuTiles; ++row)
    for (int band : {1, 3}) {
      Case c{row, DType::kBF16, WeightLayout::kOutIn, 700, 1100 / 8 * 8, 328};
      c.band = band, c.blocks = 4;
      EXPECT_EQ(run_case(c), 0) << c.describe();
    }
}

TEST_F(Gemm, Epilogues) {
  for (int row = 0; row < kGpuTiles; ++row)
    for (DType dtype : {DType::kBF16, DType::kF16})
      for (WeightLayout layout : {WeightLayout::kOutIn, WeightLayout::kInOut})
        for (Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                      Activation::kQuickGelu, Activation::kSilu})
          for (bool gated : {false, true}) {
            if (gated && gpu_tile(row).engine == EngineKind::kSm90 && !sm90::kTable[row].gateable(layout)) continue;
            Case const c{row, dtype, layout, 140, 272, 40, false, activation, gated, true};
            EXPECT_LE(run_case(c), bench::tolerance(DType::kBF16)) << c.describe();
          }
}

}  // namespace
}  // namespace flux::test
