#pragma once
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flux/tensor.h"

namespace flux {

/// A tensor as a safetensors file describes it. Checkpoints also hold integers, booleans and FP8, which FLUX keeps but
/// cannot multiply.
struct StoredTensor {
  std::string dtype;  ///< the file's word: "F32", "BF16", "I64", ...
  std::vector<int64_t> shape;
  std::span<std::byte const> bytes;  ///< in the mapped file

  bool readable() const;  ///< F64, F32, F16 or BF16: tensor() will work
  /// A view of the mapped bytes: read-only, valid as long as its checkpoint, and possibly unaligned, which the format
  /// allows (see aligned() and copy_of() in owned_tensor.h). [n] is one row, [a, b, n] is [a * b, n], a scalar [1, 1].
  /// Throws Error{kUnsupported} for other dtypes.
  Tensor tensor() const;
  std::string describe() const;  ///< "F32 [384, 1536]"
};

using StoredTensors = std::map<std::string, StoredTensor, std::less<>>;

/// Reads and checks the header of a safetensors file held in memory; `name` stands for the file in messages. The result
/// views `file`. Throws Error{kInvalid}, one sentence, unless the tensors lie back to back and fill the file, each as
/// large as its dtype and shape say.
StoredTensors parse_safetensors(std::span<std::byte const> file, std::string_view name);

/// Writes tensors as one safetensors file, whole or not at all. A tensor of one row becomes a vector.
void write_safetensors(std::filesystem::path const& path, std::map<std::string, Tensor> const& tensors);

}  // namespace flux
