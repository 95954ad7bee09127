#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "flux/tensor.h"
#include "io/mapped_file.h"

namespace flux {

/// What the header of a NumPy `.npy` file says, checked against the bytes behind it.
///
/// Formats 1 to 3, little-endian, C order; dtypes `<f8`, `<f4`, `<f2`, and `<V2` (or `|V2`) for bf16, the two raw bytes
/// that NumPy itself stores for ml_dtypes.bfloat16: `np.load(file).view(ml_dtypes.bfloat16)` reads it back. Integers
/// (`<u2` too) are refused, for they might mean numbers.
struct NpyHeader {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  size_t offset = 0;  ///< of the first element, in bytes

  /// The matrix this array is taken for: [last] is one row, [a, b, last] is [a * b, last], a scalar is [1, 1].
  int64_t rows() const;
  int64_t columns() const;
};

/// Reads and checks a header; `name` stands for the file in messages. Throws Error{kInvalid}, one sentence, if it is no
/// .npy file, lies about its size, or holds what FLUX does not read.
NpyHeader parse_npy(std::span<std::byte const> file, std::string_view name);

/// A `.npy` file, read by memory map.
class NpyFile {
 public:
  explicit NpyFile(std::filesystem::path const& path);

  std::vector<int64_t> const& shape() const { return header_.shape; }
  /// A view into the map: read-only, valid as long as this object. Unaligned where the header's writer did not pad
  /// (see aligned() and copy_of() in owned_tensor.h); NumPy pads.
  Tensor tensor() const;

 private:
  MappedFile file_;
  NpyHeader header_;
};

/// Writes a matrix (strided or not) as a two-dimensional C-order array, whole or not at all.
void write_npy(std::filesystem::path const& path, Tensor const& matrix);

}  // namespace flux
