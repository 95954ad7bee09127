#pragma once
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flux/tensor.h"
#include "io/mapped_file.h"

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

/// A checkpoint of one or many safetensors files, read by memory map.
class Checkpoint {
 public:
  /// `path` is a `.safetensors` file, a `.safetensors.index.json`, or a folder that holds
  /// `model.safetensors.index.json`, `model.safetensors`, or any `*.safetensors` files (then all of them).
  explicit Checkpoint(std::filesystem::path const& path);

  StoredTensors const& tensors() const { return tensors_; }
  bool contains(std::string_view name) const { return tensors_.find(name) != tensors_.end(); }
  /// Throws Error{kInvalid} naming the tensor and some that resemble it.
  StoredTensor const& at(std::string_view name) const;
  Tensor tensor(std::string_view name) const;  ///< as StoredTensor::tensor, the message naming the tensor

  std::filesystem::path const& path() const { return path_; }      ///< as given
  std::filesystem::path const& folder() const { return folder_; }  ///< where the files lie, e.g. for config.json

 private:
  void add(std::filesystem::path const& file);
  void add_index(std::filesystem::path const& index);

  std::filesystem::path path_, folder_;
  std::vector<MappedFile> files_;
  StoredTensors tensors_;
};

/// Writes tensors as one safetensors file, whole or not at all. A tensor of one row becomes a vector.
void write_safetensors(std::filesystem::path const& path, std::map<std::string, Tensor> const& tensors);

}  // namespace flux
