#include "world/stream.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace flux {
namespace {

constexpr int kLookMs = 20;

// False: given up. True: it may move now, or has an end to tell of.
bool moves(int fd, short what, GiveUp const& give_up) {
  for (;;) {
    pollfd one{fd, what, 0};
    if (poll(&one, 1, kLookMs) > 0) return true;
    if (give_up()) return false;
  }
}

template <class Move>
bool all(int fd, short what, size_t bytes, GiveUp const& give_up, Move&& move) {
  for (size_t done = 0; done < bytes;) {
    ssize_t const n = move(done);
    if (n > 0) {
      done += static_cast<size_t>(n);
      continue;
    }
    bool const later = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (!later || !moves(fd, what, give_up)) return false;
  }
  return true;
}

}  // namespace

GiveUp after_seconds(double seconds) {
  auto const end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  return [end] { return std::chrono::steady_clock::now() > end; };
}

bool send_all(int fd, void const* data, size_t bytes, GiveUp const& give_up) {
  return all(fd, POLLOUT, bytes, give_up, [&](size_t done) {
    return send(fd, static_cast<char const*>(data) + done, bytes - done, MSG_NOSIGNAL | MSG_DONTWAIT);
  });
}

bool receive_all(int fd, void* data, size_t bytes, GiveUp const& give_up) {
  return all(fd, POLLIN, bytes, give_up,
             [&](size_t done) { return recv(fd, static_cast<char*>(data) + done, bytes - done, MSG_DONTWAIT); });
}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace flux
