#pragma once
// The slow, obvious answer in fp64, and the distance from it.
#include <vector>

#include "flux/problem.h"
#include "flux/world.h"

namespace flux::bench {

/// A matrix in fp64.
struct Matrix64 {
  int64_t rows = 0, columns = 0;
  std::vector<double> values;
  double* row(int64_t r) { return values.data() + r * columns; }
  double const* row(int64_t r) const { return values.data() + r * columns; }
};

Matrix64 widened(Tensor const& t);
/// a · bᵀ (kOutIn) or a · b, the weight widened a block at a time.
Matrix64 product(Matrix64 const& a, Tensor const& weight, WeightLayout layout);
/// Multiplies a's row i, row rows[i] of all, by its scale, and each column by its own, where there are any.
void scale(Matrix64& a, std::vector<int64_t> const& rows, Tensor const& of_rows, Tensor const& of_columns);
/// Adds one row to every row.
void add_row(Matrix64& a, Tensor const& row);
/// a = act(a), times `up` where it is given.
void activate(Matrix64& a, Activation activation, Matrix64 const* up = nullptr);

/// Sums for ‖out − ref‖ / ‖ref‖; those of several ranks add up.
struct Deviation {
  double difference = 0, reference = 0;  // squares
  void add(Tensor const& out, Matrix64 const& want);
  /// NaN or infinity in the output makes it infinite.
  double relative() const;
};

/// Collective: the same matrix of every rank, added; and the deviation over all ranks' outputs.
Matrix64 sum_over_ranks(World& world, Matrix64 const& mine);
double relative_over_ranks(World& world, Deviation const& mine);

/// Up to `most` rows of [0, m), evenly spread, the first and last among them.
std::vector<int64_t> sampled_rows(int64_t m, int64_t most);

}  // namespace flux::bench
