#pragma once
// Elements in memory against elements in arithmetic: bf16, fp16, int8 and fp8 are stored, fp32 or fp64 is computed
// with.
#include <cstddef>
#include <cstdint>

#include "flux/tensor.h"

namespace flux::host {

/// `count` consecutive elements of `dtype` as T (float or double), and back, rounded to nearest even; int8 and fp8
/// beyond their largest are that.
template <class T>
void widen(void const* from, DType dtype, T* to, int64_t count);
template <class T>
void narrow(T const* from, void* to, DType dtype, int64_t count);

/// to[i] += from[i], each addition atomic against other ranks that add to the same row; not int8 and fp8.
template <class T>
void add_atomically(T const* from, void* to, DType dtype, int64_t count);

/// Whether products of `dtype` are added in double: elements of one byte for the sake of sums that are exact, as int32
/// is.
constexpr bool adds_in_double(DType dtype) { return dtype == DType::kF64 || size_of(dtype) == 1; }

inline std::byte* element(void* base, DType dtype, int64_t index) {
  return static_cast<std::byte*>(base) + index * size_of(dtype);
}
inline std::byte const* element(void const* base, DType dtype, int64_t index) {
  return static_cast<std::byte const*>(base) + index * size_of(dtype);
}

}  // namespace flux::host
