#include "bench/reference.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "engine/host/element.h"
#include "engine/host/multiply.h"

namespace flux::bench {

Matrix64 widened(Tensor const& t) {
  Matrix64 a{t.rows, t.columns, std::vector<double>(t.rows * t.columns)};
  for (int64_t r = 0; r < t.rows; ++r) host::widen(t.row(r), t.dtype, a.row(r), t.columns);
  return a;
}

Matrix64 product(Matrix64 const& a, Tensor const& weight, WeightLayout layout) {
  bool const out_in = layout == WeightLayout::kOutIn;
  int64_t const n = out_in ? weight.rows : weight.columns, k = a.columns;
  Matrix64 c{a.rows, n, std::vector<double>(a.rows * n)};
  constexpr int64_t kBlock = 256;  // rows of the weight held in fp64 at a time
  for (int64_t first = 0; first < weight.rows; first += kBlock) {
    Tensor block = weight;
    block.data = weight.row(first), block.rows = std::min(kBlock, weight.rows - first);
    Matrix64 const b = widened(block);
    if (out_in)
      host::multiply_add<double>({a.values.data(), k}, {b.values.data(), k}, layout, c.values.data() + first, n, a.rows,
                                 b.rows, k);
    else
      host::multiply_add<double>({a.values.data() + first, k}, {b.values.data(), n}, layout, c.values.data(), n, a.rows,
                                 n, b.rows);
  }
  return c;
}

void scale(Matrix64& a, std::vector<int64_t> const& rows, Tensor const& of_rows, Tensor const& of_columns) {
  auto at = [](Tensor const& scales, int64_t i) {
    return scales ? double{static_cast<float const*>(scales.data)[i]} : 1;
  };
  for (int64_t r = 0; r < a.rows; ++r)
    for (int64_t j = 0; j < a.columns; ++j) a.row(r)[j] *= at(of_rows, rows[r]) * at(of_columns, j);
}

void add_row(Matrix64& a, Tensor const& row) {
  Matrix64 const b = widened(row);
  for (int64_t r = 0; r < a.rows; ++r)
    for (int64_t j = 0; j < a.columns; ++j) a.row(r)[j] += b.values[j];
}

void activate(Matrix64& a, Activation activation, Matrix64 const* up) {
  host::activate<double>(activation, a.values.data(), up ? up->values.data() : nullptr,
                         static_cast<int64_t>(a.values.size()));
}

void Deviation::add(Tensor const& out, Matrix64 const& want) {
  Matrix64 const got = widened(out);
  for (size_t i = 0; i < want.values.size(); ++i) {
    double const d = got.values[i] - want.values[i];
    difference += d * d;
    reference += want.values[i] * want.values[i];
  }
}

double Deviation::relative() const {
  if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
  return reference > 0 ? std::sqrt(difference / reference) : std::sqrt(difference);
}

Matrix64 sum_over_ranks(World& world, Matrix64 const& mine) {
  Matrix64 sum{mine.rows, mine.columns, std::vector<double>(mine.values.size())};
  for (auto const& bytes :
       world.all_gather({reinterpret_cast<char const*>(mine.values.data()), mine.values.size() * sizeof(double)}))
    for (size_t i = 0; i < sum.values.size(); ++i) {
      double value = 0;
      std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
      sum.values[i] += value;
    }
  return sum;
}

double relative_over_ranks(World& world, Deviation const& mine) {
  Deviation sum;
  for (auto const& bytes : world.all_gather({reinterpret_cast<char const*>(&mine), sizeof mine})) {
    Deviation one;
    std::memcpy(&one, bytes.data(), sizeof one);
    sum.difference += one.difference, sum.reference += one.reference;
  }
  return sum.relative();
}

std::vector<int64_t> sampled_rows(int64_t m, int64_t most) {
  std::vector<int64_t> rows;
  int64_t const count = std::min(m, most);
  for (int64_t i = 0; i < count; ++i) rows.push_back(count == 1 ? 0 : i * (m - 1) / (count - 1));
  return rows;
}

}  // namespace flux::bench
