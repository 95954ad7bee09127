#include "engine/host/sum.h"

#include <cmath>
#include <vector>

#include "engine/host/element.h"
#include "tile/signal.h"

namespace flux::host {
namespace {

template <class T>
void sum_rows_as(std::span<Tensor const> slots, int64_t row, int64_t rows, Tensor const& out, SumEpilogue const& e) {
  int64_t const n = out.columns;
  std::vector<T> sum(n), term(n);
  auto add = [&](Tensor const& from, int64_t r) {
    widen(from.row(r), from.dtype, term.data(), n);
    for (int64_t j = 0; j < n; ++j) sum[j] += term[j];
  };
  for (int64_t r = row; r < row + rows; ++r) {
    widen(slots[0].row(r), slots[0].dtype, sum.data(), n);
    for (size_t s = 1; s < slots.size(); ++s) add(slots[planted(Bug::kSumOrder) ? slots.size() - s : s], r);
    if (e.bias) add(e.bias, 0);
    if (e.residual) add(e.residual, r);
    narrow(sum.data(), out.row(r), out.dtype, n);
    if (!e.norm_weight) continue;
    double squares = 0;
    for (T x : sum) squares += double(x) * double(x);
    T const scale = T(1.0 / std::sqrt(squares / double(n) + e.norm_epsilon));
    widen(e.norm_weight.row(0), e.norm_weight.dtype, term.data(), n);
    for (int64_t j = 0; j < n; ++j) sum[j] = sum[j] * scale * term[j];
    narrow(sum.data(), e.normed.row(r), e.normed.dtype, n);
  }
}

}  // namespace

void sum_rows(std::span<Tensor const> slots, int64_t row, int64_t rows, Tensor const& out,
              SumEpilogue const& epilogue) {
  if (rows <= 0 || out.columns == 0) return;
  if (out.dtype == DType::kF64)
    sum_rows_as<double>(slots, row, rows, out, epilogue);
  else
    sum_rows_as<float>(slots, row, rows, out, epilogue);
}

}  // namespace flux::host
