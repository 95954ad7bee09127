#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "flux/error.h"

namespace flux {

/// Element types. `bf16` and `fp16` are multiplied with fp32 accumulation; `fp32` and `fp64` on the host engine alone.
/// `int8` with int32 and `fp8` (e4m3, no infinities) with fp32 accumulation: only x and weights are of these types,
/// what they make is bf16 (result_of), see Scales.
enum class DType : uint8_t { kF64, kF32, kF16, kBF16, kI8, kF8 };

constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kF64: return 8;
    case DType::kF32: return 4;
    case DType::kF16:
    case DType::kBF16: return 2;
    case DType::kI8:
    case DType::kF8: return 1;
  }
  return 0;
}

/// What x and weights of `dtype` are multiplied into: outputs, biases, residuals and partial sums are of this type.
constexpr DType result_of(DType dtype) { return size_of(dtype) == 1 ? DType::kBF16 : dtype; }

/// A rank's k is a multiple of so many elements: of one byte always, of two bytes on GPUs.
constexpr int64_t k_unit(DType dtype) { return size_of(dtype) == 1 ? 16 : 8; }

constexpr std::string_view name(DType dtype) {
  switch (dtype) {
    case DType::kF64: return "fp64";
    case DType::kF32: return "fp32";
    case DType::kF16: return "fp16";
    case DType::kBF16: return "bf16";
    case DType::kI8: return "int8";
    case DType::kF8: return "fp8";
  }
  return "?";
}

/// Throws `Error{kInvalid}` naming the allowed words.
DType parse_dtype(std::string_view text);

/// A row-major matrix that somebody else owns: `rows` x `columns` elements, rows `stride` elements apart
/// (stride >= columns). A vector is a matrix of one row. `data == nullptr` means: none.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;

  constexpr explicit operator bool() const { return data != nullptr; }
  constexpr int64_t bytes() const { return rows * columns * size_of(dtype); }  ///< of a contiguous copy
  constexpr bool contiguous() const { return stride == columns || rows <= 1; }
  void* row(int64_t r) const { return static_cast<std::byte*>(data) + r * stride * size_of(dtype); }
};

/// A contiguous matrix view.
inline Tensor matrix(void* data, DType dtype, int64_t rows, int64_t columns) {
  return {data, dtype, rows, columns, columns};
}

}  // namespace flux
