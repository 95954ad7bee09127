#pragma once
// The host's instruction layer: one matrix product and the epilogue's functions, both Eigen's.
#include <cstdint>

#include "flux/problem.h"

namespace flux::host {

/// A row-major operand: consecutive rows are `stride` elements apart.
template <class T>
struct Operand {
  T const* data;
  int64_t stride;
};

/// c += a · bᵀ (kOutIn: b is [n, k]) or a · b (kInOut: b is [k, n]); a is [m, k], c is [m, n] with rows `c_stride`
/// apart.
template <class T>
void multiply_add(Operand<T> a, Operand<T> b, WeightLayout layout, T* c, int64_t c_stride, int64_t m, int64_t n,
                  int64_t k);

/// x = act(x), times `up` where it is given. `count` elements.
template <class T>
void activate(Activation activation, T* x, T const* up, int64_t count);

}  // namespace flux::host
