// Files handed from rank to rank, as the handles of GPU memory are: here they are files of host memory.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "world/bootstrap.h"
#include "world/file_exchange.h"
#include "world/together.h"

namespace flux::test {
namespace {

using Clock = std::chrono::steady_clock;

size_t open_files() {
  auto const all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<size_t>(std::distance(all, {}));
}

File file_with(std::string const& text) {
  File file(memfd_create("flux test", MFD_CLOEXEC));
  EXPECT_EQ(write(file.descriptor(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  return file;
}

std::string text_of(File const& file) {
  char text[64] = {};
  ssize_t const bytes = pread(file.descriptor(), text, sizeof text, 0);
  return bytes < 0 ? "unreadable" : std::string(text, bytes);
}

// What each rank, a thread, ended with: its error's text, or empty.
std::vector<std::string> on_ranks(int ranks, std::function<void(Bootstrap&)> const& body) {
  auto const point = std::make_shared<MeetingPoint>(ranks);
  std::vector<std::string> ends(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      ThreadBootstrap bootstrap(point, r, ranks);
      try {
        body(bootstrap);
      } catch (Error const& error) {
        ends[r] = std::string(name(error.kind())) + ": " + error.what();
      }
    });
  for (auto& thread : threads) thread.join();
  return ends;
}

TEST(FileExchange, EveryRankGetsTheFileOfEveryOther) {
  size_t const before = open_files();
  for (int ranks : {1, 2, 3, 16}) {
    std::vector<std::vector<std::string>> read(ranks, std::vector<std::string>(ranks));
    auto const ends = on_ranks(ranks, [&](Bootstrap& b) {
      for (int round = 0; round < 3; ++round)
        share_files(
            b, Nodes(b.size()), 10, [&] { return file_with("of rank " + std::to_string(b.rank())); },
            [&](int r, File file) { read[b.rank()][r] = text_of(file); });
    });
    for (int r = 0; r < ranks; ++r) {
      EXPECT_EQ(ends[r], "");
      for (int p = 0; p < ranks; ++p)
        EXPECT_EQ(read[r][p], p == r ? "" : "of rank " + std::to_string(p)) << "at rank " << r;
    }
  }
  EXPECT_EQ(open_files(), before);
}

TEST(FileExchange, WhatOneRankCannotDoEveryRankHears) {
  size_t const before = open_files();
  for (bool mapping : {false, true}) {
    auto const ends = on_ranks(3, [&](Bootstrap& b) {
      auto fail_here = [&](bool now) {
        if (now && b.rank() == 1) throw Error(ErrorKind::kUnsupported, "no memory of that kind");
      };
      share_files(
          b, Nodes(b.size()), 10,
          [&] {
            fail_here(!mapping);
            return file_with("x");
          },
          [&](int, File) { fail_here(mapping); });
    });
    for (auto const& end : ends) EXPECT_EQ(end, "unsupported: rank 1: no memory of that kind");
  }
  EXPECT_EQ(open_files(), before);
}

TEST(FileExchange, LettersOfStrangersAreDropped) {
  size_t const before = open_files();
  {
    LetterBox ours, theirs, stranger;
    auto false_address = ours.address();
    false_address[0] ^= 1;  // a stranger does not know the token
    File const wrong = file_with("wrong"), right = file_with("right");
    std::thread outside([&] { EXPECT_THROW(stranger.exchange(1, {false_address, {}}, wrong, 0.2), Error); });
    outside.join();
    std::vector<std::string> const addresses{ours.address(), theirs.address()};
    std::thread other([&] { theirs.exchange(1, addresses, right, 10); });
    auto const files = ours.exchange(0, addresses, wrong, 10);
    other.join();
    EXPECT_EQ(text_of(files[1]), "right");
  }
  EXPECT_EQ(open_files(), before);
}

// A rank in a process of its own that opens its box, says where it is, and sends nothing.
class SilentRank {
 public:
  SilentRank() {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      LetterBox const box;
      std::string const mine = box.address();
      if (write(ends[1], mine.data(), mine.size()) != static_cast<ssize_t>(mine.size())) _exit(1);
      for (;;) pause();
    }
    close(ends[1]);
    address_.resize(LetterBox{}.address().size());
    EXPECT_EQ(read(ends[0], address_.data(), address_.size()), static_cast<ssize_t>(address_.size()));
    close(ends[0]);
  }
  ~SilentRank() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::string const& address() const { return address_; }
  void end() const { kill(pid_, SIGKILL); }

 private:
  pid_t pid_;
  std::string address_;
};

// How long until the error, and that it names rank 1.
double seconds_until_error(LetterBox& box, SilentRank const& peer, double limit_seconds) {
  auto const start = Clock::now();
  try {
    box.exchange(0, {box.address(), peer.address()}, file_with("x"), limit_seconds);
    ADD_FAILURE() << "a rank that sends nothing was not missed";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
    EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
  }
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TEST(FileExchange, AKilledRankIsMissedAtOnce) {
  size_t const before = open_files();
  {
    SilentRank peer;
    LetterBox box;
    std::thread blow([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      peer.end();
    });
    EXPECT_LT(seconds_until_error(box, peer, 30), 2);
    blow.join();
    EXPECT_LT(seconds_until_error(box, peer, 30), 2);  // and one that is gone before we write
  }
  EXPECT_EQ(open_files(), before);
}

TEST(FileExchange, ASilentRankIsMissedAtTheLimit) {
  SilentRank peer;
  LetterBox box;
  double const seconds = seconds_until_error(box, peer, 0.5);
  EXPECT_GE(seconds, 0.5);
  EXPECT_LT(seconds, 2);
}

TEST(Together, AllRanksGoOnOrNone) {
  auto const ends = on_ranks(3, [&](Bootstrap& b) {
    together(b, 10, [] {});
    together(b, 10, [&] {
      if (b.rank() > 0) throw std::runtime_error("of rank " + std::to_string(b.rank()));
    });
  });
  for (auto const& end : ends) EXPECT_EQ(end, "device: rank 1: of rank 1");
}

}  // namespace
}  // namespace flux::test
