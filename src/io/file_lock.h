#pragma once
#include <filesystem>

namespace flux {

/// Keeps other processes from changing a file for as long as it lives: an advisory lock on `<path>.lock`, which stays
/// behind empty. Readers need none: files appear whole (AtomicFile).
class FileLock {
 public:
  /// Waits for another holder at most `limit_seconds`, then throws Error{kTimeout}. Throws Error{kInvalid} where the
  /// folder may not be written.
  explicit FileLock(std::filesystem::path path, double limit_seconds = 10);
  FileLock(FileLock const&) = delete;
  FileLock& operator=(FileLock const&) = delete;
  ~FileLock();

 private:
  int descriptor_ = -1;
};

}  // namespace flux
