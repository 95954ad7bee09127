// The programs: good ones, and mishaps.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

#include "op/scenario.h"
#include "world/program.h"
#include "world/team.h"

namespace flux::test {
namespace {

using std::chrono::milliseconds;

// Every third scenario of this many ranks, every one of the special ones.
void scenarios(World& world) {
  int i = 0;
  for (Scenario const& s : world.nodes() > 1 ? scenarios_of(world.nodes()) : all_scenarios()) {
    if (s.ranks != world.size() || (!s.ordered && s.slow < 0 && i++ % 3 != 0)) continue;
    std::string const failure = run_scenario(world, s);
    if (!failure.empty()) throw std::runtime_error(failure);
  }
}

// Calls without end, in the middle of which `signal` hits a rank.
void struck(World& world, int signal, int victim = 1) {
  SmallCall call(world, 64);
  std::thread blow;
  if (world.rank() == victim)
    blow = std::thread([=] {
      std::this_thread::sleep_for(milliseconds(200));
      kill(getpid(), signal);
    });
  for (int i = 0;; ++i) call.run(1 + i * 13 % 64, i);
}

// Waiters note whom they wait for until they have heard of the end themselves.
void killed_beside_waiters(World& world) {
  if (world.rank() == 1) kill(getpid(), SIGKILL);
  for (;; world.check()) store_release(&world.team().record().peer, static_cast<Word>(2 - world.rank()));
}

// A whole node goes away at once.
void node_dies(World& world) {
  if (world.rank() >= 2) return struck(world, SIGKILL, world.rank());
  struck(world, SIGKILL, -1);
}

void throws(World& world) {
  SmallCall call(world, 64);
  for (int i = 0;; ++i) {
    if (i == 20 && world.rank() == 1) throw std::runtime_error("rank 1 has had enough");
    call.run(33, i);
  }
}

void leaves(World& world) {
  SmallCall call(world, 64);
  for (int i = 0; i < (world.rank() == 1 ? 20 : 40); ++i) call.run(33, i);
  if (world.rank() == 1) return;
  throw std::runtime_error("the others went on without rank 1");
}

// Ranks end at very different times, and nobody counts on one that has ended.
void ends_apart(World& world) {
  SmallCall call(world, 64);
  for (int i = 0; i < 30; ++i) call.run(33, i);
  std::this_thread::sleep_for(milliseconds(150 * world.rank()));
  world.check();
}

void other_order(World& world) {
  SmallCall first(world, 64), second(world, 64, 24);
  first.run(64), second.run(64);
  if (world.rank() == 1)
    second.run(64), first.run(64);
  else
    first.run(64), second.run(64);
}

void other_m(World& world) {
  SmallCall call(world, 64);
  call.run(64);
  call.run(world.rank() == 1 ? 63 : 64);
}

// One row: ranks 0 and 1 own none, so they wait for nothing but credits and are calls ahead when rank 2 differs.
void other_m_far_ahead(World& world) {
  SmallCall call(world, 64), more(world, 64);
  for (int i = 0; i < 2; ++i) call.run(1), more.run(1);
  if (world.rank() == 2) std::this_thread::sleep_for(milliseconds(300));
  call.run(world.rank() == 2 ? 64 : 1);
  for (int i = 0; i < 2; ++i) more.run(1), call.run(1);
}

void other_plan(World& world) {
  SmallCall call(world, 64, 16, parse_plan(world.rank() == 1 ? "route=stage" : "route=push"));
  call.run(64);
}

void other_operator(World& world) {
  if (world.rank() == 1) {
    GemmAllReduce op(world, {64, 16, DType::kF32});
    world.barrier();
  } else {
    SmallCall call(world, 64);
    call.run(64);
  }
}

// m of 2^31 - 1 rows: more memory than there is.
void too_much_memory(World& world) {
  for (int i = 0; i < 2; ++i) {
    try {
      SmallCall call(world, (int64_t{1} << 31) - 1, 256);
      throw std::runtime_error("terabytes were allocated");
    } catch (Error const& error) {
      if (error.kind() != ErrorKind::kDevice) throw;
      if (std::string(error.what()).find("bytes") == std::string::npos) throw std::runtime_error(error.what());
    }
  }
  SmallCall call(world, 64);  // and the world is none the worse
  call.run(64);
}

// Two instances on two lanes, called from two threads of every rank in whatever order they come.
void two_lanes(World& world) {
  SmallCall first(world, 64, 16, parse_plan("lane=0")), second(world, 64, 24, parse_plan("lane=1"));
  auto calls = [](SmallCall& call, int step) {
    for (int i = 0; i < 300; ++i) call.run(1 + i * step % 64, i);
  };
  auto other = std::async(std::launch::async, [&] { calls(second, 1); });
  calls(first, 5);
  other.get();
}

// GPUs that one rank, or this build, does not have: every rank hears of it, as the same error, and goes on.
void no_such_gpu(World& world) {
  if (world.kind() == "threads") return;
  WorldOptions options;
  options.limit_seconds = 5;
  auto expect = [&](int device, ErrorKind kind) {
    options.device = device;
    std::string said = "nothing";
    try {
      World::processes(bootstrap_from_environment(), options);
    } catch (Error const& error) {
      if (error.kind() != kind) throw;
      said = error.what();
    }
    for (auto const& one : world.all_gather(said))
      if (one != said || one == "nothing")
        throw std::runtime_error(fmt::format("one rank says '{}', another '{}'", said, one));
  };
  expect(99, ErrorKind::kUnsupported);
  expect(world.rank() == 1 ? 99 : kHostEngine, ErrorKind::kInvalid);  // not all on GPUs
  expect(world.rank() == 1 ? -7 : kHostEngine, ErrorKind::kInvalid);
  options.device = kHostEngine;
  auto const again = World::processes(bootstrap_from_environment(), options);
  SmallCall(*again, 64).run(64);
}

// A world that fails, and another after it in the same process.
void second_world(World& world) {
  try {
    other_m(world);
    throw std::runtime_error("different calls went unnoticed");
  } catch (Error const&) {
  }
  if (world.kind() == "threads") return;
  WorldOptions options;
  options.limit_seconds = 5;
  auto const again = World::processes(bootstrap_from_environment(), options);
  SmallCall call(*again, 64);
  for (int i = 0; i < 10; ++i) call.run(64 - i, i);
}

}  // namespace

std::vector<Program> const& programs() {
  auto killed = [](World& world) { struck(world, SIGKILL); };
  auto stalled = [](World& world) { struck(world, SIGSTOP); };
  auto nothing = [](World&) {};
  static std::vector<Program> const all = {
      {"scenarios1", 1, 20, scenarios},
      {"scenarios2", 2, 20, scenarios},
      {"scenarios3", 3, 20, scenarios},
      {"scenarios5", 5, 20, scenarios},
      {"scenarios16", 16, 20, scenarios},
      {"nodes4", 4, 20, scenarios, kHostEngine, 1, 2},
      {"nodes8", 8, 20, scenarios, kHostEngine, 1, 2},
      {"nodes_killed", 4, 2, killed, kHostEngine, 1, 2},
      {"nodes_node_dies", 4, 2, node_dies, kHostEngine, 1, 2},
      {"nodes_stalled", 4, 2, stalled, kHostEngine, 1, 2},
      {"nodes_throws", 4, 10, throws, kHostEngine, 1, 2},
      {"nodes_leaves", 4, 10, leaves, kHostEngine, 1, 2},
      {"nodes_ends_apart", 4, 10, ends_apart, kHostEngine, 1, 2},
      {"nodes_other_m", 4, 10, other_m, kHostEngine, 1, 2},
      {"nodes_two_lanes", 4, 10, two_lanes, kHostEngine, 1, 2},
      {"killed", 4, 2, killed},
      {"killed_beside_waiters", 3, 2, killed_beside_waiters},
      {"stalled", 4, 2, stalled},
      {"throws", 3, 10, throws},
      {"leaves", 3, 10, leaves},
      {"ends_apart", 4, 10, ends_apart},
      {"other_order", 3, 10, other_order},
      {"other_m", 3, 10, other_m},
      {"other_m_far_ahead", 3, 10, other_m_far_ahead},
      {"other_plan", 3, 10, other_plan},
      {"other_operator", 3, 10, other_operator},
      {"too_much_memory", 3, 10, too_much_memory},
      {"two_lanes", 3, 10, two_lanes},
      {"second_world", 3, 10, second_world},
      {"no_such_gpu", 3, 10, no_such_gpu},
      {"never_comes", 3, 1, nothing},
      {"ends_early", 3, 10, nothing},
  };
  return all;
}

}  // namespace flux::test
