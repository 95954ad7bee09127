#pragma once
#include <cstddef>
#include <filesystem>
#include <span>

namespace flux {

/// A file mapped read-only into memory: no copy, pages come as they are touched. Whatever views its bytes must not
/// outlive it, nor write through them. A file that somebody shortens meanwhile raises SIGBUS on the lost pages, as any
/// mapping does; writers that replace files by rename (AtomicFile) never shorten one.
class MappedFile {
 public:
  MappedFile() = default;
  /// Throws Error: kInvalid if there is no such file, it may not be read or is not a regular file; else kDevice.
  explicit MappedFile(std::filesystem::path const& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  /// Empty for an empty file. Starts at a page boundary otherwise.
  std::span<std::byte const> bytes() const { return bytes_; }

 private:
  std::span<std::byte const> bytes_;
};

}  // namespace flux
