// GEMM+RS on four ranks: each holds a quarter of k, and ends with a quarter of y's rows, summed over the ranks.
#include <cstdio>
#include <vector>

#include "flux/op.h"

int main() {
  constexpr int64_t kM = 256, kN = 96, kK = 512;
  flux::run_threads(4, {}, [](flux::World& world) {
    std::vector<float> x(kM * kK / 4, 1.0f), w(kN * kK / 4, 1.0f + world.rank()), y(kM / 4 * kN), bias(kN, 3.0f);
    flux::GemmReduceScatter op(world, {kM, kN, flux::DType::kF32});
    flux::SumEpilogue after;
    after.bias = flux::matrix(bias.data(), flux::DType::kF32, 1, kN);
    op.run(kM, flux::matrix(x.data(), flux::DType::kF32, kM, kK / 4),
           flux::matrix(w.data(), flux::DType::kF32, kN, kK / 4), flux::WeightLayout::kOutIn,
           flux::matrix(y.data(), flux::DType::kF32, kM / 4, kN), after);
    for (float value : y)
      if (value != kK / 4 * (1 + 2 + 3 + 4) + 3.0f) throw flux::Error(flux::ErrorKind::kInternal, "y is wrong");
    if (world.rank() == 0) std::puts("gemm_rs: right on 4 ranks");
  });
}
