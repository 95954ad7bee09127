#pragma once
#include <filesystem>
#include <string_view>
#include <vector>

#include "io/mapped_file.h"
#include "io/safetensors.h"

namespace flux {

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

}  // namespace flux
