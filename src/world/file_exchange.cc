#include "world/file_exchange.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>

#include "world/together.h"

namespace flux {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kLookEveryMs = 20;

File new_socket() {
  File made(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) throw Error(ErrorKind::kDevice, fmt::format("cannot make a socket: {}", std::strerror(errno)));
  return made;
}

// Room for one file in a message.
union Attachment {
  cmsghdr aligned;
  char bytes[CMSG_SPACE(sizeof(int))];
};

}  // namespace

File::~File() {
  if (descriptor_ >= 0) close(descriptor_);
}

LetterBox::LetterBox() : socket_(new_socket()) {
  sockaddr_un any{};
  any.sun_family = AF_UNIX;
  address_.length = sizeof address_.name;
  auto* const name = reinterpret_cast<sockaddr*>(&address_.name);
  // Without a name: the kernel finds one in the abstract namespace that nobody has.
  if (bind(socket_.descriptor(), reinterpret_cast<sockaddr*>(&any), sizeof any.sun_family) != 0 ||
      getsockname(socket_.descriptor(), name, &address_.length) != 0 ||
      getrandom(&address_.token, sizeof address_.token, 0) != sizeof address_.token)
    throw Error(ErrorKind::kDevice, fmt::format("cannot name a socket: {}", std::strerror(errno)));
}

std::string LetterBox::address() const { return {reinterpret_cast<char const*>(&address_), sizeof address_}; }

// False: the box is full, try again. Throws where it is closed.
bool LetterBox::send(int from, Address const& to, File const& file) const {
  Letter letter{to.token, from};
  Attachment attachment{};
  iovec content{&letter, sizeof letter};
  msghdr message{};
  message.msg_name = const_cast<sockaddr_un*>(&to.name), message.msg_namelen = to.length;
  message.msg_iov = &content, message.msg_iovlen = 1;
  message.msg_control = attachment.bytes, message.msg_controllen = sizeof attachment.bytes;
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof(int));
  int const descriptor = file.descriptor();
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  if (sendmsg(socket_.descriptor(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return true;
  if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ETOOMANYREFS) return false;
  throw Error(ErrorKind::kTimeout, std::strerror(errno));
}

// All letters that have come. What is not from a rank of this world is dropped, its file closed.
void LetterBox::receive(std::vector<File>& files) const {
  for (;;) {
    Letter letter{};
    Attachment attachment{};
    iovec content{&letter, sizeof letter};
    msghdr message{};
    message.msg_iov = &content, message.msg_iovlen = 1;
    message.msg_control = attachment.bytes, message.msg_controllen = sizeof attachment.bytes;
    ssize_t const bytes = recvmsg(socket_.descriptor(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return;
    File file;
    cmsghdr const* const head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
      file = File(descriptor);
    }
    bool const known = bytes == sizeof letter && letter.token == address_.token && letter.from >= 0 &&
                       letter.from < static_cast<int>(files.size());
    if (known && file && !files[letter.from]) files[letter.from] = std::move(file);
  }
}

bool LetterBox::is_open(Address const& box) {
  File const probe = new_socket();
  return connect(probe.descriptor(), reinterpret_cast<sockaddr const*>(&box.name), box.length) == 0;
}

std::vector<File> LetterBox::exchange(int rank, std::vector<std::string> const& addresses, File const& mine,
                                      double limit_seconds) {
  auto const deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_seconds));
  int const ranks = static_cast<int>(addresses.size());
  std::vector<File> files(ranks);
  std::vector<bool> sent(ranks);
  auto box_of = [&](int p) {
    Address box{};
    if (addresses[p].size() == sizeof box) std::memcpy(&box, addresses[p].data(), sizeof box);
    return box;
  };
  auto asked = [&](int p) { return p != rank && !addresses[p].empty(); };
  for (;;) {
    int missing = -1;
    for (int p = 0; p < ranks; ++p) {
      if (!asked(p)) continue;
      try {
        if (!sent[p]) sent[p] = send(rank, box_of(p), mine);
      } catch (Error const& error) {
        throw Error(ErrorKind::kTimeout,
                    fmt::format("cannot hand a file to rank {}: {}; has its process ended, or is it in another "
                                "container? All ranks must be in one network namespace",
                                p, error.what()));
      }
      if (!sent[p]) missing = p;
    }
    receive(files);
    for (int p = 0; p < ranks; ++p)
      if (asked(p) && !files[p]) missing = p;
    if (missing < 0) return files;
    if (Clock::now() > deadline)
      throw Error(ErrorKind::kTimeout,
                  fmt::format("waited {} s for rank {} to hand over its memory", limit_seconds, missing));
    pollfd come{socket_.descriptor(), POLLIN, 0};
    if (poll(&come, 1, kLookEveryMs) != 0) continue;
    for (int p = 0; p < ranks; ++p) {
      if (!asked(p) || files[p] || is_open(box_of(p))) continue;
      receive(files);  // it may have sent and closed since we looked
      if (!files[p]) throw Error(ErrorKind::kTimeout, fmt::format("rank {} ended before it handed over its memory", p));
    }
  }
}

void share_files(Bootstrap& bootstrap, Nodes const& nodes, double limit_seconds, std::function<File()> const& make,
                 std::function<void(int rank, File file)> const& map) {
  std::optional<LetterBox> box;
  File mine;
  together(bootstrap, limit_seconds, [&] {
    box.emplace();
    mine = make();
  });
  int const rank = bootstrap.rank();
  auto addresses = bootstrap.all_gather(box->address(), limit_seconds);
  for (int r = 0; r < bootstrap.size(); ++r)
    if (!nodes.share_memory(r, rank)) addresses[r].clear();
  std::vector<File> files;
  // Half of the limit: who gives up here can still tell those who wait in the meeting after it.
  together(bootstrap, limit_seconds, [&] { files = box->exchange(rank, addresses, mine, limit_seconds / 2); });
  together(bootstrap, limit_seconds, [&] {
    for (int r : nodes.neighbours(rank))
      if (r != rank) map(r, std::move(files[r]));
  });
}

}  // namespace flux
