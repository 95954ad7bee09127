#pragma once
// Open files handed from process to process: that is how processes reach each other's GPU memory, whose handles are
// files. /proc opens shared memory of the host, but not these.
#include <sys/un.h>

#include <functional>
#include <utility>

#include "world/nodes.h"

namespace flux {

/// A file descriptor, closed with this object.
class File {
 public:
  File() = default;
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File();
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  int descriptor() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

/// A rank's letter box: a datagram socket in the abstract namespace, which has no name in any folder and is gone with
/// its process.
class LetterBox {
 public:
  LetterBox();
  /// Where the others write to, and the number by which a letter is known to be one of theirs.
  std::string address() const;
  /// Sends `mine` to every other rank that has an address and returns theirs, by rank; ours stays empty. Throws
  /// Error{kTimeout} after the limit, and at once where a rank's box is closed before its letter came.
  std::vector<File> exchange(int rank, std::vector<std::string> const& addresses, File const& mine,
                             double limit_seconds);

 private:
  struct Address {
    uint64_t token;
    uint32_t length;  // of `name`
    sockaddr_un name;
  };
  struct Letter {
    uint64_t token;
    int32_t from;
  };
  bool send(int from, Address const& to, File const& file) const;
  void receive(std::vector<File>& files) const;
  static bool is_open(Address const& box);

  File socket_;
  Address address_{};
};

/// Collective: `make` opens a rank's file, every other rank of its node gets it and `map`s it. Where a step fails on
/// one rank, all throw the same Error.
void share_files(Bootstrap& bootstrap, Nodes const& nodes, double limit_seconds, std::function<File()> const& make,
                 std::function<void(int rank, File file)> const& map);

}  // namespace flux
