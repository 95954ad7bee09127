// What ranks do on the fake GPU: worlds come, memory is shared, worlds go; and a rank that is struck meanwhile.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "gpu/fake/runtime.h"
#include "world/program.h"
#include "world/team.h"

namespace flux::test {
namespace {

size_t open_files() {
  auto const all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<size_t>(std::distance(all, {}));
}

// A world whose ranks write into each other's memory and find there what was written.
void one_world(int device) {
  WorldOptions options;
  options.limit_seconds = 4, options.device = device;
  auto const world = World::processes(bootstrap_from_environment(), options);
  int const rank = world->rank(), ranks = world->size();
  if (world->links().size() != static_cast<size_t>(ranks * (ranks - 1))) throw std::runtime_error("links are missing");
  auto const memory = world->team().allocate(3 << 20, Use::kWords);
  auto word = [&](int owner, int writer) { return reinterpret_cast<Word*>(memory->at(owner)) + writer; };
  for (int p = 0; p < ranks; ++p) *word(p, rank) = static_cast<Word>(100 + rank);
  world->barrier();
  for (int p = 0; p < ranks; ++p)
    if (*word(rank, p) != static_cast<Word>(100 + p)) throw std::runtime_error("a word is missing");
  world->barrier();
}

void expect_nothing_left(World& world, size_t files) {
  // Blocks of CUDA IPC wait for the others to close theirs, which they do before they come here.
  bool const ipc = left_on_fake_gpu().starts_with("mallocs");
  if (!ipc && (!left_on_fake_gpu().empty() || open_files() != files))
    throw std::runtime_error(
        fmt::format("rank {}: left are {} and {} of {} files", world.rank(), left_on_fake_gpu(), open_files(), files));
}

void worlds_on(World& world, int device) {
  size_t const files = open_files();
  try {
    for (int i = 0; i < 3; ++i) one_world(device);
  } catch (Error const&) {
    expect_nothing_left(world, files);
    throw;
  }
  expect_nothing_left(world, files);
}

// Where a proof did not end, nothing is freed: that would wait for it.
void stuck(World&) { one_world(0); }

// Rank 1 is killed after FLUX_TEST_AFTER_US, wherever it is.
void killed(World& world) {
  std::thread blow;
  if (world.rank() == 1)
    blow = std::thread([] {
      std::this_thread::sleep_for(std::chrono::microseconds(std::atoi(std::getenv("FLUX_TEST_AFTER_US"))));
      kill(getpid(), SIGKILL);
    });
  for (;;) worlds_on(world, 0);
}

}  // namespace

std::vector<Program> const& programs() {
  static std::vector<Program> const all = {
      {"worlds", 3, 10, [](World& world) { worlds_on(world, 0); }},
      {"worlds16", 16, 20, [](World& world) { worlds_on(world, 0); }},
      {"worlds_by_rank", 3, 10, [](World& world) { worlds_on(world, kGpuByRank); }},
      {"stuck", 3, 10, stuck},
      {"killed", 3, 10, killed},
  };
  return all;
}

}  // namespace flux::test
