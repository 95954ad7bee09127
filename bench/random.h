#pragma once
// Random inputs that every rank can make any part of for itself: the number at (i, j) depends on the seed alone.
#include <cstdint>

#include "engine/host/element.h"

namespace flux::bench {

struct Uniform {
  uint64_t seed = 0;
  double scale = 1;

  /// In [-scale, scale).
  double at(int64_t i, int64_t j) const {
    uint64_t x =
        seed * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(i) * 0xd1342543de82ef95ull + static_cast<uint64_t>(j);
    x ^= x >> 32, x *= 0xd6e8feb86659fd93ull, x ^= x >> 32, x *= 0xd6e8feb86659fd93ull, x ^= x >> 32;
    return scale * (static_cast<double>(x >> 11) * 0x1p-52 - 1.0);
  }

  /// Fills `t` with the numbers from (row, column) on; transposed: t[i, j] is the number at (row + j, column + i).
  void fill(Tensor const& t, int64_t row, int64_t column, bool transposed = false) const {
    for (int64_t i = 0; i < t.rows; ++i)
      for (int64_t j = 0; j < t.columns; ++j) {
        double const value = transposed ? at(row + j, column + i) : at(row + i, column + j);
        host::narrow(&value, host::element(t.data, t.dtype, i * t.stride + j), t.dtype, 1);
      }
  }
};

}  // namespace flux::bench
