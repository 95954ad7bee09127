#include "io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "flux/error.h"
#include "io/file_error.h"
#include "io/quote.h"

namespace flux {

MappedFile::MappedFile(std::filesystem::path const& path) {
  // O_NONBLOCK: opening a pipe that nobody writes must not hang.
  int const descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw_file_error(path, "open", errno);
  struct Close {
    int descriptor;
    ~Close() { close(descriptor); }  // the mapping outlives its descriptor
  } const closing{descriptor};

  struct stat facts {};
  if (fstat(descriptor, &facts) != 0) throw_file_error(path, "read", errno);
  if (!S_ISREG(facts.st_mode))
    throw Error(ErrorKind::kInvalid, quote(path.native()) + " is no regular file; give the path of a file");
  if (facts.st_size == 0) return;
  auto const size = static_cast<size_t>(facts.st_size);
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (memory == MAP_FAILED) throw_file_error(path, "map", errno);
  bytes_ = {static_cast<std::byte const*>(memory), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace flux
