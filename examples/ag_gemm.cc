// AG+GEMM on four ranks, threads of this process: each holds a quarter of x's rows and a quarter of w's, and ends with
// a quarter of y's columns. The gather is hidden behind the GEMM.
#include <cstdio>
#include <vector>

#include "flux/op.h"

int main() {
  constexpr int64_t kM = 256, kN = 512, kK = 128;
  flux::run_threads(4, {}, [](flux::World& world) {
    std::vector<float> x(kM / 4 * kK, 1.0f + world.rank()), w(kN / 4 * kK, 0.5f), y(kM * kN / 4);
    flux::AllGatherGemm op(world, {kM, kK, flux::DType::kF32});
    flux::Linear layer;
    layer.weight = flux::matrix(w.data(), flux::DType::kF32, kN / 4, kK);
    layer.out = flux::matrix(y.data(), flux::DType::kF32, kM, kN / 4);
    op.run(kM, flux::matrix(x.data(), flux::DType::kF32, kM / 4, kK), layer);
    for (int64_t row = 0; row < kM; ++row)  // row r belongs to rank r / 64, whose x is 1 + its rank
      if (float const want = 0.5f * kK * static_cast<float>(1 + row / (kM / 4)); y[row * kN / 4] != want)
        throw flux::Error(flux::ErrorKind::kInternal, "y is wrong");
    if (world.rank() == 0) std::puts("ag_gemm: right on 4 ranks");
  });
}
