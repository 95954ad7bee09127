#include "io/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "flux/error.h"
#include "io/file_error.h"
#include "io/quote.h"

namespace flux {

FileLock::FileLock(std::filesystem::path path, double limit_seconds) {
  path += ".lock";
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw_file_error(path, "open", errno);
  using Clock = std::chrono::steady_clock;
  auto const end = Clock::now() + std::chrono::duration<double>(limit_seconds);
  while (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    int const error = errno;
    if (error == EINTR) continue;
    bool const held = error == EWOULDBLOCK;
    if (held && Clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    close(descriptor_);
    if (!held) throw_file_error(path, "lock", error);
    throw Error(ErrorKind::kTimeout, fmt::format("{} is locked by another process for {} s; try again, or remove it if "
                                                 "no process uses it",
                                                 quote(path.native()), limit_seconds));
  }
}

FileLock::~FileLock() { close(descriptor_); }

}  // namespace flux
