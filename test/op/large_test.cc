// More than 2^31 elements in one tensor. Needs some 6 GB and a minute: only where FLUX_TEST_LARGE is set.
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/host/element.h"
#include "flux/op.h"
#include "io/owned_tensor.h"

namespace flux::test {
namespace {

// Rank 0 makes all columns but eight, so its output has more elements than 31 bits can count.
TEST(Large, OutputsMayHaveMoreElementsThanTwoToThe31) {
  if (!std::getenv("FLUX_TEST_LARGE")) GTEST_SKIP() << "set FLUX_TEST_LARGE=1 to run it";
  constexpr int64_t kM = (1 << 16) + 9, kN = (1 << 15) + 64, kK = 8;
  static_assert(kM * kN > int64_t{1} << 31);
  run_threads(2, {}, [](World& world) {
    Part const rows = part_of_rows(kM, world.rank(), 2);
    int64_t const n = world.rank() == 0 ? kN : 8;
    auto value = [](int64_t i) { return static_cast<float>(i % 5 - 2); };
    auto fill = [&](Tensor const& t, int64_t first) {
      for (int64_t i = 0; i < t.rows; ++i)
        for (int64_t j = 0; j < t.columns; ++j) {
          float const v = value(first + i);
          host::narrow(&v, static_cast<std::byte*>(t.row(i)) + j * size_of(t.dtype), t.dtype, 1);
        }
    };
    OwnedTensor x(DType::kBF16, rows.size, kK), w(DType::kBF16, n, kK), out(DType::kBF16, kM, n);
    fill(x.view(), rows.begin), fill(w.view(), 0);
    Linear linear;
    linear.weight = w.view(), linear.out = out.view();
    AllGatherGemm op(world, {kM, kK, DType::kBF16});
    op.run(kM, x.view(), linear);
    for (int64_t i : {int64_t{0}, int64_t{1}, kM / 2, kM - 2, kM - 1})
      for (int64_t j : {int64_t{0}, n / 2, n - 1}) {
        float got = 0;
        host::widen(static_cast<std::byte*>(out.view().row(i)) + j * 2, DType::kBF16, &got, 1);
        EXPECT_EQ(got, kK * value(i) * value(j)) << i << " " << j;
      }
  });
}

}  // namespace
}  // namespace flux::test
