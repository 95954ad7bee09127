// GEMM+AR with residual and RMSNorm in the same call, as a decoding step ends: every rank has the whole sum.
#include <cmath>
#include <cstdio>
#include <vector>

#include "flux/op.h"

int main() {
  constexpr int64_t kM = 3, kN = 64, kK = 128;
  flux::run_threads(4, {}, [](flux::World& world) {
    std::vector<float> x(kM * kK / 4, 0.25f), w(kN * kK / 4, 0.5f), residual(kM * kN, 1.0f), gamma(kN, 2.0f);
    std::vector<float> y(kM * kN), normed(kM * kN);
    flux::GemmAllReduce op(world, {kM, kN, flux::DType::kF32}, flux::parse_plan("shots=one"));
    auto f32 = [](std::vector<float>& data, int64_t rows) {
      return flux::matrix(data.data(), flux::DType::kF32, rows, static_cast<int64_t>(data.size()) / rows);
    };
    flux::SumEpilogue after;
    after.residual = f32(residual, kM), after.norm_weight = f32(gamma, 1), after.normed = f32(normed, kM);
    op.run(kM, f32(x, kM), f32(w, kN), flux::WeightLayout::kOutIn, f32(y, kM), after);
    for (int64_t i = 0; i < kM * kN; ++i)  // all elements of a row are alike, so the norm is gamma
      if (y[i] != 17.0f || std::abs(normed[i] - 2.0f) > 1e-5f)
        throw flux::Error(flux::ErrorKind::kInternal, "y or its norm is wrong");
    if (world.rank() == 0) std::puts("gemm_ar: right on 4 ranks");
  });
}
