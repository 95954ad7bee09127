// A tensor-parallel MLP: AG+GEMM with SiLU in its epilogue, then GEMM+RS. Rows stay sharded between layers.
#include <cstdio>
#include <vector>

#include "flux/op.h"

int main() {
  constexpr int64_t kRows = 100, kHidden = 64, kInner = 192;  // 100 rows over 3 ranks: 33, 33, 34
  flux::run_threads(3, {}, [](flux::World& world) {
    int64_t const rows = flux::part_of_rows(kRows, world.rank(), world.size()).size;
    int64_t const inner = flux::part_of_columns(kInner, world.rank(), world.size()).size;
    auto f32 = [](std::vector<float>& data, int64_t r, int64_t c) {
      return flux::matrix(data.data(), flux::DType::kF32, r, c);
    };
    std::vector<float> x(rows * kHidden, 0.5f), up(inner * kHidden, 0.1f), down(kHidden * inner, 0.01f);
    std::vector<float> hidden(kRows * inner), y(rows * kHidden);
    flux::AllGatherGemm first(world, {kRows, kHidden, flux::DType::kF32});
    flux::GemmReduceScatter second(world, {kRows, kHidden, flux::DType::kF32});
    flux::Linear layer;
    layer.weight = f32(up, inner, kHidden), layer.out = f32(hidden, kRows, inner);
    layer.activation = flux::Activation::kSilu;
    first.run(kRows, f32(x, rows, kHidden), layer);
    second.run(kRows, f32(hidden, kRows, inner), f32(down, kHidden, inner), flux::WeightLayout::kOutIn,
               f32(y, rows, kHidden));
    float const want = 192 * 0.01f * 3.2f / (1 + 0.04076220f);  // silu(3.2), e^-3.2 = 0.0407622
    for (float value : y)
      if (value < want - 1e-4f || value > want + 1e-4f) throw flux::Error(flux::ErrorKind::kInternal, "y is wrong");
    if (world.rank() == 0) std::puts("mlp: right on 3 ranks");
  });
}
