#pragma once
// Bytes over a connected socket, all of them or none, and never a wait without an end.
#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>

namespace flux {

/// Asked whenever nothing moves, every 20 ms: true gives up.
using GiveUp = std::function<bool()>;
GiveUp after_seconds(double seconds);

/// False: the other end is gone, or it was given up.
bool send_all(int fd, void const* data, size_t bytes, GiveUp const& give_up);
bool receive_all(int fd, void* data, size_t bytes, GiveUp const& give_up);

/// Closes it.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

}  // namespace flux
