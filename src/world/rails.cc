#include "world/rails.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>

#include "world/together.h"

namespace flux {
namespace {

constexpr std::string_view kGoodbye = "left";
constexpr double kDialSeconds = 2;  // an address of another network may not answer at all

// What a caller says first.
struct Hello {
  uint64_t token;  // of whom it calls
  int32_t rank;
  uint32_t number;
};

sockaddr_in address_of(std::string const& text, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET, address.sin_port = htons(port);
  inet_pton(AF_INET, text.c_str(), &address.sin_addr);
  return address;
}

void without_delay(int fd) {
  int const yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

// Connected within some seconds, or none.
Socket reach(sockaddr_in const& address, GiveUp const& give_up) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  auto const* to = reinterpret_cast<sockaddr const*>(&address);
  if (::connect(socket.fd(), to, sizeof address) != 0 && errno != EINPROGRESS) return Socket();
  GiveUp const too_long = after_seconds(kDialSeconds);
  pollfd one{socket.fd(), POLLOUT, 0};
  while (poll(&one, 1, 20) == 0)
    if (too_long() || give_up()) return Socket();
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? std::move(socket) : Socket();
}

}  // namespace

// Those of the loopback come last: they serve nodes that one machine plays.
std::vector<std::string> own_addresses() {
  if (char const* said = std::getenv("FLUX_ADDRESS"); said && *said) {
    in_addr parsed;
    if (inet_pton(AF_INET, said, &parsed) != 1)
      throw Error(ErrorKind::kInvalid, fmt::format("FLUX_ADDRESS is '{}'; give an IPv4 address of this machine that "
                                                   "the other nodes reach",
                                                   said));
    return {said};
  }
  std::vector<std::string> list, loopback;
  ifaddrs* all = nullptr;
  getifaddrs(&all);
  for (ifaddrs* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || !(one->ifa_flags & IFF_UP)) continue;
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof text);
    (one->ifa_flags & IFF_LOOPBACK ? loopback : list).push_back(text);
  }
  freeifaddrs(all);
  list.insert(list.end(), loopback.begin(), loopback.end());
  return list;
}

Rails::Rails(Bootstrap& bootstrap, Nodes const& nodes, double limit_seconds) : rank_(bootstrap.rank()) {
  Door mine;
  together(bootstrap, limit_seconds, [&] {
    std::random_device random;
    mine.token = uint64_t{random()} << 32 | random();
    mine.addresses = own_addresses();
    listener_ = Socket(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in address = address_of("0.0.0.0", 0);
    socklen_t size = sizeof address;
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    if (!listener_ || bind(listener_.fd(), at, size) != 0 || listen(listener_.fd(), SOMAXCONN) != 0 ||
        getsockname(listener_.fd(), at, &size) != 0)
      throw Error(ErrorKind::kDevice, fmt::format("cannot listen for other nodes: {}", std::strerror(errno)));
    mine.port = ntohs(address.sin_port);
  });
  auto const cards = bootstrap.all_gather(
      fmt::format("{} {} {}", mine.token, mine.port, fmt::join(mine.addresses, " ")), limit_seconds);
  for (int node = 0; node < nodes.count; ++node) {
    int const r = nodes.on_node(rank_, node);
    std::istringstream card(cards[r]);
    card >> doors_[r].token >> doors_[r].port;
    for (std::string address; card >> address;) doors_[r].addresses.push_back(address);
  }
  together(bootstrap, limit_seconds, [&] {
    for (auto const& [peer, door] : doors_)
      if (peer != rank_) lines_[peer].socket = connect(peer, 0, limit_seconds);
  });
}

Socket Rails::connect(int peer, uint32_t number, double limit_seconds) {
  GiveUp const give_up = after_seconds(limit_seconds);
  Socket socket = rank_ < peer ? dial(peer, number, give_up) : answer(peer, number, give_up);
  if (!socket)
    throw Error(
        ErrorKind::kTimeout,
        fmt::format("rank {} cannot reach rank {} of another node within {} s, at {}; FLUX_ADDRESS names the "
                    "address of a node that the others reach",
                    rank_, peer, limit_seconds, fmt::join(doors_.at(rank_ < peer ? peer : rank_).addresses, ", ")));
  without_delay(socket.fd());
  return socket;
}

Socket Rails::dial(int peer, uint32_t number, GiveUp const& give_up) const {
  Door const& door = doors_.at(peer);
  do {
    for (std::string const& address : door.addresses) {
      Socket socket = reach(address_of(address, door.port), give_up);
      Hello const hello{door.token, rank_, number};
      uint64_t answered = 0;  // by whom it was meant for: an address may be another machine's as well
      if (socket && send_all(socket.fd(), &hello, sizeof hello, give_up) &&
          receive_all(socket.fd(), &answered, sizeof answered, give_up) && answered == door.token)
        return socket;
    }
  } while (!give_up());
  return Socket();
}

Socket Rails::answer(int peer, uint32_t number, GiveUp const& give_up) {
  for (;;) {
    if (auto const waiting = early_.find({peer, number}); waiting != early_.end()) {
      Socket socket = std::move(waiting->second);
      early_.erase(waiting);
      return socket;
    }
    pollfd one{listener_.fd(), POLLIN, 0};
    if (poll(&one, 1, 20) <= 0) {
      if (give_up()) return Socket();
      continue;
    }
    Socket caller(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    Hello hello{};
    uint64_t const token = doors_.at(rank_).token;
    if (caller && receive_all(caller.fd(), &hello, sizeof hello, after_seconds(kDialSeconds)) && hello.token == token &&
        send_all(caller.fd(), &token, sizeof token, give_up))
      early_.insert_or_assign({hello.rank, hello.number}, std::move(caller));
  }
}

std::optional<Rails::Ending> Rails::news() {
  for (auto& [peer, line] : lines_) {
    char buffer[512];
    ssize_t n = 0;
    while (!line.over && (n = recv(line.socket.fd(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0)
      line.said.append(buffer, static_cast<size_t>(n));
    if (line.over || (n < 0 && (errno == EAGAIN || errno == EINTR))) continue;
    line.over = true;
    if (line.said != kGoodbye) return Ending{peer, line.said};
    line.left = true;
  }
  return std::nullopt;
}

void Rails::end(std::string_view why) {
  if (std::exchange(ended_, true)) return;
  std::string_view const last = why.empty() ? kGoodbye : why;
  for (auto& [peer, line] : lines_) {
    send(line.socket.fd(), last.data(), last.size(),
         MSG_NOSIGNAL | MSG_DONTWAIT);  // short: the socket's buffer takes it
    shutdown(line.socket.fd(), SHUT_WR);
  }
}

}  // namespace flux
