#pragma once
#include <cstddef>
#include <filesystem>
#include <string_view>

#include "flux/tensor.h"

namespace flux {

/// A file that appears whole or not at all. Bytes go to a temporary file in the same folder; commit() puts it in place
/// by rename. Without commit (an exception, an early return) the temporary file is removed and whatever stood at `path`
/// stays as it was. A symbolic link is followed: its target is replaced.
class AtomicFile {
 public:
  /// Throws Error{kInvalid} if the folder is missing or may not be written, or if `path` is no regular file.
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(AtomicFile const&) = delete;
  AtomicFile& operator=(AtomicFile const&) = delete;
  ~AtomicFile();

  /// Throws Error{kDevice} if the disk is full or fails.
  void write(void const* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void write(Tensor const& matrix);  ///< its rows, one behind the other

  /// Brings all bytes to the disk, then renames. Call it once, last.
  void commit();

 private:
  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
};

/// Writes `text` to `path`, whole or not at all.
void write_file(std::filesystem::path const& path, std::string_view text);

}  // namespace flux
