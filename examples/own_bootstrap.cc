// A world of processes that find each other by a function of ours: here two processes and a socket pair. Any all-gather
// of bytes will do (torch.distributed, a key-value store, MPI).
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "flux/op.h"

static int run_rank(int rank, int socket) {
  auto exchange = [=](std::string_view mine) {
    uint64_t length = mine.size();
    std::vector<std::string> all(2, std::string(mine));
    if (write(socket, &length, sizeof length) < 0 || write(socket, mine.data(), mine.size()) < 0) return all;
    if (read(socket, &length, sizeof length) <= 0) return std::vector<std::string>();  // the other one is gone
    all[1 - rank].resize(length);
    for (size_t at = 0; at < length;) at += read(socket, all[1 - rank].data() + at, length - at);
    return all;
  };
  auto world = flux::World::processes(flux::bootstrap_from(rank, 2, exchange));
  std::vector<float> x(8 * 16, 1.0f), w(32 * 16, 2.0f), y(16 * 32);
  flux::AllGatherGemm op(*world, {16, 16, flux::DType::kF32});
  flux::Linear layer;
  layer.weight = flux::matrix(w.data(), flux::DType::kF32, 32, 16);
  layer.out = flux::matrix(y.data(), flux::DType::kF32, 16, 32);
  op.run(16, flux::matrix(x.data(), flux::DType::kF32, 8, 16), layer);
  return y.front() == 32.0f && y.back() == 32.0f ? 0 : 1;
}

int main() {
  int pair[2], status = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
  if (fork() == 0) return run_rank(1, pair[1]);
  int const here = run_rank(0, pair[0]);
  wait(&status);
  std::puts(here + status == 0 ? "own_bootstrap: right on 2 processes" : "own_bootstrap: wrong");
  return here + status == 0 ? 0 : 1;
}
