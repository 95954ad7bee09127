#include "world/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "flux/world.h"
#include "world/stream.h"

namespace flux {
namespace {

// A message is its length and its bytes. Length `kEnd + r` says instead: rank r has ended, nobody will meet again.
constexpr uint64_t kEnd = ~uint64_t{0} - 1024;
constexpr uint64_t kLargest = uint64_t{1} << 28;

using Clock = std::chrono::steady_clock;

constexpr double kPatience = 10;  // seconds: a rank that is stopped does not read, and must not stop the launcher

// The connection belongs to the process: a world made after this one goes on with it.
class LauncherBootstrap final : public Bootstrap {
 public:
  LauncherBootstrap(int rank, int size, int fd) : rank_(rank), size_(size), fd_(fd) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::vector<std::string> all_gather(std::string_view mine, double limit_seconds) override {
    GiveUp const give_up = after_seconds(limit_seconds);
    uint64_t length = mine.size();
    if (!send_all(fd_, &length, sizeof length, give_up) || !send_all(fd_, mine.data(), mine.size(), give_up))
      lost(limit_seconds);
    std::vector<std::string> all(size_);
    for (auto& one : all) {
      if (!receive_all(fd_, &length, sizeof length, give_up)) lost(limit_seconds);
      if (length >= kEnd)
        throw Error(ErrorKind::kTimeout, fmt::format("rank {} ended before all ranks met", length - kEnd));
      one.resize(length);
      if (!receive_all(fd_, one.data(), length, give_up)) lost(limit_seconds);
    }
    return all;
  }

 private:
  [[noreturn]] void lost(double limit_seconds) const {
    shutdown(fd_, SHUT_RDWR);  // a late answer must not be taken for the next one; the launcher tells the others
    throw Error(
        ErrorKind::kTimeout,
        fmt::format("rank {} could not meet the other ranks through the launcher within {} s", rank_, limit_seconds));
  }
  int rank_, size_, fd_;
};

struct Child {
  pid_t pid = 0;
  int fd = -1;
  std::optional<std::string> message;  // complete, waiting for the others
  std::string partial;                 // bytes of an incomplete one
};

// Takes what has come from one rank. False when it has closed its end.
bool take(Child& child) {
  char buffer[1 << 16];
  ssize_t const n = recv(child.fd, buffer, sizeof buffer, MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0) return false;
  child.partial.append(buffer, n);
  uint64_t length = 0;
  if (child.partial.size() < sizeof length) return true;
  std::memcpy(&length, child.partial.data(), sizeof length);
  if (length > kLargest) return false;
  if (child.partial.size() >= sizeof length + length) {
    child.message = child.partial.substr(sizeof length, length);
    child.partial.erase(0, sizeof length + length);
  }
  return true;
}

void start(std::vector<Child>& children, int rank, std::vector<std::string> const& command) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
    throw Error(ErrorKind::kDevice, fmt::format("cannot make a socket pair: {}", std::strerror(errno)));
  fcntl(pair[0], F_SETFD, FD_CLOEXEC);
  pid_t const parent = getpid(), pid = fork();
  if (pid < 0) throw Error(ErrorKind::kDevice, fmt::format("cannot start rank {}: {}", rank, std::strerror(errno)));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // no rank outlives its launcher
    if (getppid() != parent) _exit(1);
    setenv("FLUX_RANK", fmt::format("{}", rank).c_str(), 1);
    setenv("FLUX_WORLD_SIZE", fmt::format("{}", children.size()).c_str(), 1);
    setenv("FLUX_BOOTSTRAP", fmt::format("fd:{}", pair[1]).c_str(), 1);
    std::vector<char*> argv;
    for (auto const& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    fmt::print(stderr, "flux: cannot run {}: {}\n", command[0], std::strerror(errno));
    _exit(127);
  }
  close(pair[1]);
  children[rank].pid = pid;
  children[rank].fd = pair[0];
}

void hang_up(std::vector<Child>& children, int ended) {
  uint64_t const word = kEnd + static_cast<uint64_t>(ended);
  for (auto& child : children)
    if (child.fd >= 0) send_all(child.fd, &word, sizeof word, after_seconds(kPatience));
}

}  // namespace

int launch(int ranks, std::vector<std::string> const& command, double grace_seconds) {
  if (ranks < 1 || command.empty()) throw Error(ErrorKind::kInvalid, "launch needs at least one rank and a command");
  std::vector<Child> children(ranks);
  for (int r = 0; r < ranks; ++r) start(children, r, command);
  int running = ranks, status = 0;
  std::optional<Clock::time_point> terminate_at;
  while (running > 0) {
    std::vector<pollfd> polls;
    for (auto const& child : children) polls.push_back({child.fd, POLLIN, 0});  // poll passes over negative ones
    poll(polls.data(), polls.size(), 20);
    bool all_here = true;
    for (int r = 0; r < ranks; ++r) {
      Child& child = children[r];
      if (child.fd >= 0 && polls[r].revents != 0 && !take(child)) {
        close(child.fd);
        child.fd = -1;
        hang_up(children, r);  // whoever meets now or later learns of it
      }
      all_here = all_here && child.message.has_value();
    }
    if (all_here) {
      for (auto& to : children)
        for (auto const& from : children) {
          uint64_t const length = from.message->size();
          GiveUp const give_up = after_seconds(kPatience);
          if (to.fd >= 0)
            send_all(to.fd, &length, sizeof length, give_up), send_all(to.fd, from.message->data(), length, give_up);
        }
      for (auto& child : children) child.message.reset();
    }
    // Of those that ended since the last look, a killed one was the cause: the others may have ended because of it.
    int failure = 0;
    for (int r = 0; r < ranks; ++r) {
      Child& child = children[r];
      int how = 0;
      if (child.pid == 0 || waitpid(child.pid, &how, WNOHANG) != child.pid) continue;
      child.pid = 0;
      --running;
      int const code = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
      if (WIFSIGNALED(how))
        fmt::print(stderr, "flux: rank {} was killed by signal {} ({})\n", r, WTERMSIG(how), strsignal(WTERMSIG(how)));
      if (code == 0) continue;
      if (failure == 0 || (WIFSIGNALED(how) && failure < 128)) failure = code;
      if (!terminate_at)
        terminate_at =
            Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(grace_seconds));
    }
    if (status == 0) status = failure;
    if (terminate_at && Clock::now() > *terminate_at) {
      for (int r = 0; r < ranks; ++r)
        if (children[r].pid != 0) {
          fmt::print(stderr, "flux: rank {} did not end within {} s of the first failure and is terminated\n", r,
                     grace_seconds);
          kill(children[r].pid, SIGKILL);
        }
      terminate_at = Clock::now() + std::chrono::hours(24);
    }
  }
  for (auto& child : children)
    if (child.fd >= 0) close(child.fd);
  return status;
}

std::unique_ptr<Bootstrap> bootstrap_from_launcher() {
  auto number = [](char const* variable, char const* prefix) {
    char const* text = std::getenv(variable);
    size_t const skip = std::strlen(prefix);
    if (!text || std::strncmp(text, prefix, skip) != 0)
      throw Error(ErrorKind::kInvalid, fmt::format("{} is '{}'; start the ranks with `flux launch -n RANKS -- COMMAND`",
                                                   variable, text ? text : "not set"));
    return std::atoi(text + skip);
  };
  int const fd = number("FLUX_BOOTSTRAP", "fd:");
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return std::make_unique<LauncherBootstrap>(number("FLUX_RANK", ""), number("FLUX_WORLD_SIZE", ""), fd);
}

}  // namespace flux
