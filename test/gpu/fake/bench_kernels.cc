// The kernels of the bench, played by loops: operands, the reference, copies, holding a stream.
#include <Eigen/Core>
#include <cmath>
#include <cstring>
#include <random>

#include "bench/gemm/copy_rows.h"
#include "bench/gemm/reference.h"
#include "bench/gemm/timing.h"

namespace flux::bench {

// ---- bench/gemm/copy_rows.cu ----

void copy_rows(CopiesBothWays const& copies, CUstream_st*) {
  for (auto const& way : {copies.in, copies.out})
    for (CopyOfRows const& c : way)
      if (c.bytes > 0) std::memcpy(c.to, c.from, c.bytes);
}

void wait_for_rows(Word const* word, Word goal, Watch const& watch, int source, CUstream_st*) {
  await(word, goal, watch, Awaited::kRows, source, 0);
}

// ---- bench/gemm/hold.cu ----

void hold(int64_t, CUstream_st*) {}

// ---- bench/gemm/reference.cu: bf16, plain weights ----

namespace {

using Number = Eigen::bfloat16;

int64_t sampled_row(GemmProblem const& p, int64_t sample, int rows) {
  return (sample * p.m / rows + sample * 7919) % p.m;
}
double dot(GemmProblem const& p, void const* x, void const* w, int64_t row, int64_t column) {
  auto const *a = static_cast<Number const*>(x), *b = static_cast<Number const*>(w);
  double sum = 0;
  for (int64_t k = 0; k < p.rank_k(); ++k)
    sum += double{static_cast<float>(a[row * p.rank_k() + k])} * static_cast<float>(b[column * p.rank_k() + k]);
  return sum;
}

}  // namespace

void fill_random(void* data, DType, int64_t count, uint32_t seed, int64_t first) {
  std::mt19937 random(seed);
  random.discard(first);
  for (int64_t i = 0; i < count; ++i)
    static_cast<Number*>(data)[i] = Number(static_cast<float>(random()) * 0x1p-31f - 1.f);
}

void add_products(GemmProblem const& p, void const* x, void const* weight, int rows, double* sums) {
  for (int64_t i = 0; i < rows * p.columns(); ++i)
    sums[i] += dot(p, x, weight, sampled_row(p, i / p.columns(), rows), i % p.columns());
}

double error_of(GemmProblem const& p, void const* x, void const* weight, void const*, void const* out, int rows,
                void const* rest, double const* others) {
  double differences = 0, squares = 0;
  for (int64_t i = 0; i < rows * p.columns(); ++i) {
    int64_t const row = sampled_row(p, i / p.columns(), rows), column = i % p.columns(),
                  at = row * p.columns() + column;
    double value = dot(p, x, weight, row, column);
    if (rest) value += static_cast<float>(static_cast<Number const*>(rest)[at]);
    if (others) value += others[i];
    double const difference = static_cast<float>(static_cast<Number const*>(out)[at]) - value;
    differences += difference * difference, squares += value * value;
  }
  return std::sqrt(differences / squares);
}

}  // namespace flux::bench
