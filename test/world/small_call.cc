#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "world/program.h"

namespace flux::test {

SmallCall::SmallCall(World& w, int64_t max_m, int64_t columns, Plan const& plan)
    : world(w), op(w, {max_m, columns, DType::kF32}, plan), n(columns) {}

void SmallCall::run(int64_t m, int seed) {
  constexpr int64_t kDepth = 8;
  int const rank = world.rank(), ranks = world.size();
  Part const rows = part_of_rows(m, rank, ranks);
  auto number = [&](int64_t i, int r) { return static_cast<float>((i * 7 + r * 3 + seed) % 11 - 5); };
  std::vector<float> x(m * kDepth), w(n * kDepth, 1.0f), out(rows.size * n, -1.0f);
  for (int64_t i = 0; i < m; ++i) std::fill_n(&x[i * kDepth], kDepth, number(i, rank));
  op.run(m, matrix(x.data(), DType::kF32, m, kDepth), matrix(w.data(), DType::kF32, n, kDepth), WeightLayout::kOutIn,
         matrix(out.data(), DType::kF32, rows.size, n));
  for (int64_t i = 0; i < rows.size; ++i) {
    float want = 0;
    for (int r = 0; r < ranks; ++r) want += kDepth * number(rows.begin + i, r);
    for (int64_t j = 0; j < n; ++j)
      if (out[i * n + j] != want)
        throw std::runtime_error(
            fmt::format("m={} seed={}: y[{}, {}] is {} and should be {}", m, seed, i, j, out[i * n + j], want));
  }
}

}  // namespace flux::test
