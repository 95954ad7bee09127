#include "chaos/workload.h"

#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "op/scenario.h"

namespace flux::test {
namespace {

WorldOptions options(double limit_seconds) {
  WorldOptions o;
  o.limit_seconds = limit_seconds;
  return o;
}

std::string run_all(std::vector<Scenario> const& list) {
  for (Scenario const& s : list) {
    std::string const failure = run_on_threads(s, options(5));
    if (!failure.empty()) return failure;
  }
  return {};
}

// `lines` of one operator on one shape.
std::vector<Scenario> scenarios(Scenario s, std::vector<std::string> const& lines) {
  std::vector<Scenario> list;
  for (auto const& line : lines) {
    s.plan = parse_plan(line, parse_plan("tile=16x24 band=2 workers=2"));
    list.push_back(s);
  }
  return list;
}

Scenario shape(Op op, int64_t m, int64_t n, int64_t k, int ranks, int calls) {
  Scenario s;
  s.op = op, s.m = m, s.n = n, s.k = k, s.ranks = ranks, s.calls = calls;
  return s;
}

std::string gather() {
  return run_all(scenarios(shape(Op::kAllGatherGemm, 61, 48, 32, 4, 4), {"", "transport=pull", "comm_rows=5"}));
}

std::string scatter() {
  return run_all(scenarios(shape(Op::kGemmReduceScatter, 61, 48, 64, 4, 4), {"", "route=stage", "route=ring"}));
}

std::string ordered() {
  Scenario s = shape(Op::kGemmReduceScatter, 37, 30, 29, 3, 2);
  s.ordered = true;
  return run_all(scenarios(s, {"", "slots=fp32"}));
}

// Only the last rank has a row, and there is one buffer: the others wait for nothing but credits.
std::string slow_owner() {
  Scenario s = shape(Op::kGemmReduceScatter, 1, 40, 24, 3, 20);
  s.slow = 2;
  return run_all(scenarios(s, {"buffers=1 workers=1"}));
}

// More words than a cache line holds, in front of the rows.
std::string many_words() {
  // Words that overlap rows are seen in most calls, not in each.
  return run_all(scenarios(shape(Op::kAllGatherGemm, 64, 24, 32, 4, 20), {"comm_rows=1 k_slices=2"}));
}

// Rank 0 waits for rank 2, which never comes; rank 1 is not in a call and has to hear of it. Rank 2 learns of it too.
std::string lost_peer() {
  constexpr double kLimit = 0.5;
  std::atomic<int> told = 0;
  try {
    run_threads(3, options(kLimit), [&](World& world) {
      GemmReduceScatter op(world, {8, 16, DType::kF32});
      std::vector<float> x(8 * 8, 1.0f), w(16 * 8, 1.0f), out(8 * 16);
      Tensor const y = matrix(out.data(), DType::kF32, part_of_rows(8, world.rank(), 3).size, 16);
      auto const until = std::chrono::steady_clock::now() + std::chrono::duration<double>(10 * kLimit);
      try {
        if (world.rank() == 0)
          op.run(8, matrix(x.data(), DType::kF32, 8, 8), matrix(w.data(), DType::kF32, 16, 8), WeightLayout::kOutIn, y);
        while (std::chrono::steady_clock::now() < until) {
          world.check();
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
      } catch (Error const&) {
        if (std::chrono::steady_clock::now() < until) ++told;
      }
      world.barrier();  // nobody leaves, which would tell the others too
    });
  } catch (Error const&) {
  }
  return told == 3 ? "" : fmt::format("{} of 3 ranks were told that the world has ended", told.load());
}

}  // namespace

std::vector<Workload> const& workloads() {
  static std::vector<Workload> const all = {{"gather", gather},         {"scatter", scatter},
                                            {"ordered", ordered},       {"slow_owner", slow_owner},
                                            {"many_words", many_words}, {"lost_peer", lost_peer}};
  return all;
}

Outcome run_workload(std::string const& name) {
  for (Workload const& workload : workloads()) {
    if (workload.name != name) continue;
    try {
      std::string const failure = workload.run();
      if (failure.empty()) return kClean;
      fmt::print(stderr, "wrong: {}\n", failure);
      return kWrong;
    } catch (Error const& error) {
      fmt::print(stderr, "error: {}\n", error.what());
      return kError;
    }
  }
  fmt::print(stderr, "error: there is no workload {}\n", name);
  return kError;
}

}  // namespace flux::test
