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
  bool scaled = false;  // of int8 and fp8: by powers of two, or to what other types' numbers are

  std::string describe() const {
    TileRow const tile = gpu_tile(row);
    return std::string(tile.engine == EngineKind::kSm90 ? "sm90" : "sm80") + " row " + std::to_string(tile.row) + " (" +
           std::to_string(tile.tile_m) + "x" + std::to_string(tile.tile_n) + ") " + std::string(name(dtype)) + " " +
           std::string(name(layout)) + " " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
           " " + std::string(name(activation)) + (gated ? " gated" : "") + (bias ? " bias" : "") +
           (scaled ? " scaled" : "");
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

/// Of m rows, or n columns.
DeviceMatrix scales_of(Case const& c, int64_t count) {
  DeviceMatrix scales(DType::kF32, 1, count);
  float const whole = c.dtype == DType::kI8 && !c.whole ? 1 / 127.f : 1;
  for (int64_t i = 0; i < count; ++i) scales.host[i] = whole * (i % 3 == 0 ? 2.f : i % 3 == 1 ? 0.5f : 1.f);
  scales.upload();
  return scales;
}

/// The error of one launch; 0 means that every byte is right.
double run_case(Case const& c) {
  std::mt19937 random(static_cast<unsigned>(c.m * 31 + c.n * 7 + c.k + c.row));
  bool const out_in = c.layout == WeightLayout::kOutIn;
  int64_t const columns = c.gated ? c.n / 2 : c.n;
  DeviceMatrix x(c.dtype, c.m, c.k), w(c.dtype, out_in ? c.n : c.k, out_in ? c.k : c.n),
      bias(result_of(c.dtype), 1, c.n), y(result_of(c.dtype), c.m, columns);
  DeviceMatrix const row_scales = scales_of(c, c.m), column_scales = scales_of(c, c.n);
  for (DeviceMatrix* matrix : {&x, &w, &bias}) matrix->fill(random, c.whole);
  y.poison();

  TileRow const tile = gpu_tile(c.row);
  GemmLaunch l;
  l.tile = tile;
  l.a.base[0] = x.bytes.as(), l.a_stride = c.k;
  l.weight = w.tensor(), l.layout = c.layout;
  l.c.base[0] = y.bytes.as(), l.c_stride = columns;
  if (c.bias) l.bias = bias.tensor();
  if (c.scaled) l.scales = {row_scales.tensor(), column_scales.tensor()};
  l.activation = c.activation, l.gated = c.gated;
  l.order = arrange(Order::kNaive, Tiling::kAcross, {c.m, 1, 1}, tile.tile_m, tile.tiles_n(c.n), c.band, 0);
  l.gate = Open{0, c.k};
  l.route = Keep{0, c.m}, l.processors = c.blocks;
  enqueue_gemm(l, nullptr);
  must(cudaDeviceSynchronize());
  y.download();

  Reference sums = out_in ? Reference(x.values() * w.values().transpose()) : Reference(x.values() * w.values());
  if (c.scaled) {
    sums.array().colwise() *= row_scales.values().row(0).transpose().array();
    sums.array().rowwise() *= column_scales.values().row(0).array();
  }
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

TEST_F(Gemm, OperandsOfOneByteAreExactOnWholeNumbers) {
  for (int row = sm90::kConfigs; row < kGpuTiles; ++row)
    for (DType dtype : {DType::kI8, DType::kF8})
      for (auto [m, n, k] : {std::array<int64_t, 3>{1, 8, 16}, {65, 264, 208}, {300, 520, 80}, {513, 1032, 336}})
        for (bool scaled : {false, true}) {
          Case c{row, dtype, WeightLayout::kOutIn, m, n, k};
          c.scaled = c.bias = scaled;
          EXPECT_EQ(run_case(c), 0) << c.describe();
        }
}

TEST_F(Gemm, OperandsOfOneByteScaledThenFinished) {
  for (int row = sm90::kConfigs; row < kGpuTiles; ++row)
    for (DType dtype : {DType::kI8, DType::kF8})
      for (Activation activation : {Activation::kNone, Activation::kGelu, Activation::kSilu})
        for (bool gated : {false, true}) {
          Case c{row, dtype, WeightLayout::kOutIn, 140, 272, 208, false, activation, gated, true};
          c.scaled = true;
          EXPECT_LE(run_case(c), bench::tolerance(dtype)) << c.describe();
        }
}

TEST_F(Gemm, OperandsOfOneByteAreRefusedWhereNoKernelTakesThem) {
  for (DType dtype : {DType::kI8, DType::kF8}) {
    EXPECT_THROW(run_case({sm90::kConfigs, dtype, WeightLayout::kInOut, 64, 64, 64}), Error);
    EXPECT_THROW(run_case({0, dtype, WeightLayout::kOutIn, 64, 64, 64}), Error);
    EXPECT_THROW(run_case({sm90::kConfigs, dtype, WeightLayout::kOutIn, 64, 64, 72}), Error);
  }
}

}  // namespace
}  // namespace flux::test
