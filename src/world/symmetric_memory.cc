#include "world/symmetric_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>

namespace flux {
namespace {

constexpr size_t kAlignment = 4096;

// Threads share pointers. A block lives until the last rank that can reach it lets go.
class HeapMemory final : public SymmetricMemory {
 public:
  HeapMemory(Bootstrap& bootstrap, int64_t bytes, double limit) {
    size_t const size = (static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
    auto mine = std::shared_ptr<std::byte>(static_cast<std::byte*>(std::aligned_alloc(kAlignment, size)), std::free);
    if (!mine) throw Error(ErrorKind::kDevice, fmt::format("cannot allocate {} bytes of memory", bytes));
    std::memset(mine.get(), 0, size);
    auto const* address = &mine;
    auto all = bootstrap.all_gather({reinterpret_cast<char const*>(&address), sizeof address}, limit);
    for (int r = 0; r < bootstrap.size(); ++r) {
      std::memcpy(&address, all[r].data(), sizeof address);
      owners_.push_back(*address);
      blocks_.base[r] = owners_.back().get();
    }
    bootstrap.all_gather({}, limit);  // `mine` is read by the others until here
  }

 private:
  std::vector<std::shared_ptr<std::byte>> owners_;
};

// Processes map each other's POSIX shared memory. The names are gone as soon as everybody has mapped them, so a rank
// that dies leaves nothing behind.
class MappedMemory final : public SymmetricMemory {
 public:
  MappedMemory(Bootstrap& bootstrap, int64_t bytes, double limit) : bytes_(bytes) {
    std::random_device random;
    std::string const mine = fmt::format("/flux-{}-{:08x}{:08x}", getpid(), random(), random());
    std::string failure = create(mine);
    auto names = bootstrap.all_gather(failure.empty() ? mine : "!" + failure, limit);
    for (int r = 0; r < bootstrap.size() && failure.empty(); ++r) {
      failure = names[r][0] == '!' ? fmt::format("rank {}: {}", r, names[r].substr(1)) : map(r, names[r]);
    }
    auto verdicts = bootstrap.all_gather(failure, limit);
    shm_unlink(mine.c_str());
    for (auto const& verdict : verdicts)
      if (!verdict.empty()) {
        unmap();
        throw Error(ErrorKind::kDevice, verdict);
      }
  }
  ~MappedMemory() override { unmap(); }

 private:
  std::string create(std::string const& name) const {
    int const fd = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
    int error = fd < 0
                    ? errno
                    : posix_fallocate(fd, 0, bytes_);  // now, not at the first touch: a full /dev/shm kills by SIGBUS
    if (fd >= 0) close(fd);
    if (error != 0)
      return fmt::format("cannot get {} bytes of shared memory: {} (see df /dev/shm)", bytes_, std::strerror(error));
    return {};
  }
  std::string map(int rank, std::string const& name) {
    int const fd = shm_open(name.c_str(), O_RDWR, 0600);
    void* const at = fd < 0 ? MAP_FAILED : mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int const error = errno;
    if (fd >= 0) close(fd);
    if (at == MAP_FAILED)
      return fmt::format("cannot map the shared memory of rank {}: {}; are all ranks on one host?", rank,
                         std::strerror(error));
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

std::shared_ptr<SymmetricMemory> SymmetricMemory::allocate(MemoryKind kind, Bootstrap& bootstrap, int64_t bytes,
                                                           double limit_seconds) {
  if (kind == MemoryKind::kHeap) return std::make_shared<HeapMemory>(bootstrap, bytes, limit_seconds);
  return std::make_shared<MappedMemory>(bootstrap, bytes, limit_seconds);
}

}  // namespace flux
