#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "flux/error.h"
#include "io/file_error.h"
#include "io/quote.h"

namespace flux {
namespace {

/// Where the bytes end up: the target of a symbolic link, if there is one. Refuses what a rename would destroy.
std::filesystem::path destination(std::filesystem::path path) {
  std::error_code ignored;
  for (int links = 0; std::filesystem::is_symlink(path, ignored); ++links) {
    constexpr int kMostLinks = 40;  // as the kernel follows
    if (links == kMostLinks) throw_file_error(path, "write", ELOOP);
    path = path.parent_path() / std::filesystem::read_symlink(path, ignored);  // an absolute target replaces it all
  }
  auto const status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(status)) throw_file_error(path, "write", EISDIR);
  if (path.filename().empty() || (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)))
    throw Error(ErrorKind::kInvalid, "cannot write " + quote(path.native()) +
                                         ": not a regular file; give the path of a new or existing regular file");
  return path;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(destination(std::move(path))) {
  static std::atomic<unsigned> count = 0;
  std::string const suffix = "." + std::to_string(getpid()) + "." + std::to_string(count++) + ".part";
  temporary_ = path_;
  temporary_ += suffix;
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw_file_error(path_, "write", errno);
  struct stat facts {};
  if (stat(path_.c_str(), &facts) == 0) fchmod(descriptor_, facts.st_mode & 0777);  // a replaced file keeps its mode
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(void const* data, size_t bytes) {
  auto const* at = static_cast<char const*>(data);
  while (bytes > 0) {
    ssize_t const written = ::write(descriptor_, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error(path_, "write", errno);
    at += written;
    bytes -= static_cast<size_t>(written);
  }
}

void AtomicFile::write(Tensor const& matrix) {
  if (matrix.contiguous()) return write(matrix.data, static_cast<size_t>(matrix.bytes()));
  size_t const row_bytes = static_cast<size_t>(matrix.columns * size_of(matrix.dtype));
  for (int64_t r = 0; r < matrix.rows; ++r) write(matrix.row(r), row_bytes);
}

void AtomicFile::commit() {
  // The bytes reach the disk before the name does: after a power cut the name never stands for half a file.
  if (fsync(descriptor_) != 0) throw_file_error(path_, "write", errno);
  if (close(std::exchange(descriptor_, -1)) != 0) throw_file_error(path_, "write", errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) throw_file_error(path_, "write", errno);
  temporary_.clear();
}

void write_file(std::filesystem::path const& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace flux
