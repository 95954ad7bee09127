#include "world/symmetric_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "world/file_exchange.h"

namespace flux {
namespace {

constexpr size_t kAlignment = 4096;

// Threads share pointers. A block lives until the last rank that can reach it lets go.
class HeapMemory final : public SymmetricMemory {
 public:
  HeapMemory(Bootstrap& bootstrap, Nodes const& nodes, int64_t bytes, double limit) {
    size_t const size = (static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
    auto mine = std::shared_ptr<std::byte>(static_cast<std::byte*>(std::aligned_alloc(kAlignment, size)), std::free);
    if (!mine) throw Error(ErrorKind::kDevice, fmt::format("cannot allocate {} bytes of memory", bytes));
    std::memset(mine.get(), 0, size);
    auto const* address = &mine;
    auto all = bootstrap.all_gather({reinterpret_cast<char const*>(&address), sizeof address}, limit);
    for (int r : nodes.neighbours(bootstrap.rank())) {
      std::memcpy(&address, all[r].data(), sizeof address);
      owners_.push_back(*address);
      blocks_.base[r] = owners_.back().get();
    }
    bootstrap.all_gather({}, limit);  // `mine` is read by the others until here
  }

 private:
  std::vector<std::shared_ptr<std::byte>> owners_;
};

// Processes map each other's memory files through /proc. The files have no name, so a rank that dies at any moment
// leaves nothing behind, and they do not count against the size of /dev/shm, which containers keep small.
class MappedMemory final : public SymmetricMemory {
 public:
  MappedMemory(Bootstrap& bootstrap, Nodes const& nodes, int64_t bytes, double limit) : bytes_(bytes) {
    try {
      share(bootstrap, nodes, limit);
    } catch (...) {
      unmap();
      throw;
    }
  }
  ~MappedMemory() override { unmap(); }

 private:
  struct Card {
    int32_t pid, fd, error;
    uint64_t inode;  // so that another process of that number, in another container, is not taken for the rank
  };
  void share(Bootstrap& bootstrap, Nodes const& nodes, double limit) {
    File const memory(memfd_create("flux", MFD_CLOEXEC));  // open until everybody has mapped it, or nobody will
    int const fd = memory.descriptor();
    // All of it now: what is only promised kills at the first touch, by SIGBUS.
    int const error = fd < 0 ? errno : posix_fallocate(fd, 0, bytes_);
    Card const mine{getpid(), fd, error, inode(fd)};
    auto const cards = bootstrap.all_gather({reinterpret_cast<char const*>(&mine), sizeof mine}, limit);
    std::string failure;
    for (int r : nodes.neighbours(bootstrap.rank())) {
      if (!failure.empty()) break;
      Card theirs;
      std::memcpy(&theirs, cards[r].data(), sizeof theirs);
      failure = map(r, theirs);
    }
    for (auto const& verdict : bootstrap.all_gather(failure, limit))
      if (!verdict.empty()) throw Error(ErrorKind::kDevice, verdict);
  }
  static uint64_t inode(int fd) {
    struct stat status {};
    return fd >= 0 && fstat(fd, &status) == 0 ? status.st_ino : 0;
  }
  std::string map(int rank, Card const& file) {
    if (file.error != 0)
      return fmt::format("rank {} cannot get {} bytes of shared memory: {}", rank, bytes_, std::strerror(file.error));
    int const fd = open(fmt::format("/proc/{}/fd/{}", file.pid, file.fd).c_str(), O_RDWR | O_CLOEXEC);
    bool const same = fd >= 0 && inode(fd) == file.inode;
    void* const at = same ? mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    int const error = fd >= 0 && !same ? ENOENT : errno;
    if (fd >= 0) close(fd);
    if (at == MAP_FAILED)
      return fmt::format(
          "cannot map the shared memory of rank {}: {}; are all ranks on one host, of one user and in one "
          "container?",
          rank, std::strerror(error));
    blocks_.base[rank] = static_cast<std::byte*>(at);
    return {};
  }
  void unmap() {
    for (auto*& block : blocks_.base) {
      if (block) munmap(block, bytes_);
      block = nullptr;
    }
  }
  int64_t bytes_;
};

}  // namespace

int64_t available_bytes() {
  auto value_of = [](char const* file, std::string const& wanted) {
    std::ifstream in(file);
    int64_t value = 0;
    for (std::string key; in >> key >> value && key != wanted;) in.ignore(64, '\n');
    return in ? value : 0;
  };
  int64_t available = value_of("/proc/meminfo", "MemAvailable:") * 1024;
  if (available == 0) available = std::numeric_limits<int64_t>::max();
  int64_t limit = 0, used = 0;
  std::ifstream most("/sys/fs/cgroup/memory.max"), current("/sys/fs/cgroup/memory.current");
  if (most >> limit && current >> used)  // files that were read are counted as used, and go when room is needed
    available = std::min(available, limit - used + value_of("/sys/fs/cgroup/memory.stat", "inactive_file"));
  return available;
}

std::shared_ptr<SymmetricMemory> SymmetricMemory::allocate(MemoryKind kind, Bootstrap& bootstrap, Nodes const& nodes,
                                                           int64_t bytes, double limit_seconds) {
  // Asked before anybody allocates: memory that is promised but not there ends in a kill, not in an error.
  int64_t const available = available_bytes();
  bool const enough = bytes <= available / nodes.size();
  auto const verdicts = bootstrap.all_gather(
      enough ? ""
             : fmt::format("{} ranks ask for {} bytes each and {} are available; use fewer rows or ranks", nodes.size(),
                           bytes, available),
      limit_seconds);
  for (auto const& verdict : verdicts)
    if (!verdict.empty()) throw Error(ErrorKind::kDevice, verdict);
  if (kind == MemoryKind::kHeap) return std::make_shared<HeapMemory>(bootstrap, nodes, bytes, limit_seconds);
  return std::make_shared<MappedMemory>(bootstrap, nodes, bytes, limit_seconds);
}

}  // namespace flux
