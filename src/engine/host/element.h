#pragma once
// Elements in memory against elements in arithmetic: bf16 and fp16 are stored, fp32 (or fp64) is computed with.
#include <cstddef>
#include <cstdint>

#include "flux/tensor.h"

namespace flux::host {

/// `count` consecutive elements of `dtype` as T (float or double), and back, rounded to nearest even.
template <class T>
void widen(void const* from, DType dtype, T* to, int64_t count);
template <class T>
void narrow(T const* from, void* to, DType dtype, int64_t count);

/// to[i] += from[i], each addition atomic against other ranks that add to the same row.
template <class T>
void add_atomically(T const* from, void* to, DType dtype, int64_t count);

/// The type FLUX computes with for elements of `dtype`.
template <class T>
constexpr bool computes_with(DType dtype) {
  return (dtype == DType::kF64) == (sizeof(T) == 8);
}

inline std::byte* element(void* base, DType dtype, int64_t index) {
  return static_cast<std::byte*>(base) + index * size_of(dtype);
}
inline std::byte const* element(void const* base, DType dtype, int64_t index) {
  return static_cast<std::byte const*>(base) + index * size_of(dtype);
}

}  // namespace flux::host
