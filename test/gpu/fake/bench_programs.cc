// What the bench's real ranks do on the fake GPU: exchanges, NCCL beside links, samples taken together, the whole
// suite.
#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include "bench/gemm/exchange.h"
#include "bench/gemm/lockstep.h"
#include "bench/gemm/overlap_suite.h"
#include "gpu/fake/programs.h"
#include "gpu/fake/runtime.h"
#include "kernel/check.h"
#include "temporary_folder.h"
#include "trace/trace.h"
#include "world/cuda/nccl.h"
#include "world/team.h"

namespace flux::test {
namespace {

using Numbers = std::vector<Eigen::bfloat16>;

void expect_equal(Eigen::bfloat16 const* got, Numbers const& want, std::string const& what) {
  for (size_t i = 0; i < want.size(); ++i)
    if (got[i] != want[i])
      throw std::runtime_error(
          fmt::format("{}: number {} is {} and should be {}", what, i, float(got[i]), float(want[i])));
}

/// What a rank has of [m, n] before a collective of whole numbers, and what there is behind it.
struct Whole {
  int64_t m, n;
  int ranks;
  Numbers rows() const { return numbers(1); }                                            // to be gathered
  Numbers partials(int rank) const { return numbers(static_cast<float>(rank + 1)); }     // to be added up
  Numbers sums() const { return numbers(static_cast<float>(ranks * (ranks + 1)) / 2); }  // of all ranks
  Numbers own(Numbers const& all, int rank) const {
    Part const part = part_of_rows(m, rank, ranks);
    return {all.begin() + part.begin * n, all.begin() + (part.begin + part.size) * n};
  }

 private:
  Numbers numbers(float times) const {
    Numbers all(m * n);
    for (int64_t i = 0; i < m * n; ++i)
      all[i] = Eigen::bfloat16(times * static_cast<float>((i / n * 3 + i % n) % 5 - 2));
    return all;
  }
};

// The baselines' exchanges by each of their means, more than once, of rows that divide and that do not.
void exchanges(World&) {
  using bench::Exchange;
  auto const world = world_on_gpu(10);
  int const rank = world->rank(), ranks = world->size();
  for (std::string op : {"ag_gemm", "gemm_rs", "gemm_ar"})
    for (int64_t m : {1, 2, 7, 48}) {
      Whole const whole{m, 16, ranks};
      bench::GemmProblem p{"test", "test", op, m, whole.n, whole.n, ranks};
      bool const gathers = op == "ag_gemm", all = op == "gemm_ar";
      Numbers mine = whole.own(whole.rows(), rank);
      Exchange exchange(*world, p,
                        gathers ? matrix(mine.data(), DType::kBF16, mine.size() / whole.n, whole.n) : Tensor{});
      auto* const rows = reinterpret_cast<Eigen::bfloat16*>(exchange.rows());
      Numbers const want = gathers ? whole.rows() : all ? whole.sums() : whole.own(whole.sums(), rank);
      for (int call = 0; call < 6; ++call) {
        auto const by = static_cast<Exchange::By>(call % 3);
        Numbers out(want.size(), Eigen::bfloat16(99));
        if (gathers) {
          std::fill_n(rows, m * whole.n, Eigen::bfloat16(99));
          std::ranges::copy(mine, reinterpret_cast<Eigen::bfloat16*>(exchange.own_rows()));
        } else {
          std::ranges::copy(whole.partials(rank), rows);
        }
        world->barrier();  // what others write comes after the line above
        exchange.run(by, matrix(out.data(), DType::kBF16, out.size() / whole.n, whole.n), stream_number(1));
        expect_equal(gathers ? rows : out.data(), want, fmt::format("{} m={} way {}", op, m, call % 3));
        world->barrier();
      }
      // As a chunked method goes about it: a shard at a time.
      if (!gathers) continue;
      std::fill_n(rows, m * whole.n, Eigen::bfloat16(99));
      std::ranges::copy(mine, reinterpret_cast<Eigen::bfloat16*>(exchange.own_rows()));
      world->barrier();
      Call const begun = exchange.begin(stream_number(1));
      exchange.fork(stream_number(1));
      for (int i = 1; i < ranks; ++i) exchange.send(begun, i);
      for (int i = 1; i < ranks; ++i) {
        exchange.await(begun, i, stream_number(1));
        int const source = exchange.source(i);
        int64_t const first = exchange.shards().begin(source) * whole.n;
        expect_equal(rows + first, whole.own(whole.rows(), source), fmt::format("shard of rank {}, m={}", source, m));
      }
      exchange.finish(begun, {}, stream_number(1));
    }
}

// Ranks that take samples together: nobody goes on before all have come, and each sees the slowest one's samples.
void lockstep(World& meeting) {
  auto const world = world_on_gpu(10);
  bench::Lockstep ranks(*world);
  auto const rank = static_cast<uint32_t>(world->rank());
  auto const came = meeting.team().allocate(sizeof(Word), Use::kWords);  // how often each rank has come
  for (Word round = 1; round <= 30; ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds((rank * 7 + round * 5) % 11 * 200));
    store_release(reinterpret_cast<Word*>(came->at(world->rank())), round);
    ranks.meet(stream_number(1));
    for (int p = 0; p < world->size(); ++p)
      if (load_acquire(reinterpret_cast<Word*>(came->at(p))) < round)
        throw std::runtime_error(fmt::format("rank {} went on before rank {} came for the {}th time", rank, p, round));
  }
  if (ranks.first(70 + rank) != 70) throw std::runtime_error("the first rank's number is another");
  if (ranks.least(5 - rank) != 3) throw std::runtime_error("the least number is another");
  std::vector<bench::GpuMethod> methods(2);
  methods[0].us = {1, static_cast<double>(rank), 5 - static_cast<double>(rank)}, methods[1].us = {};
  ranks.keep_slowest(methods);
  if (methods[0].us != std::vector<double>{1, 2, 5} || !methods[1].us.empty())
    throw std::runtime_error("samples are not the slowest rank's");
  world->barrier();
}

// A sample that does not end on one rank ends the world for all, in time.
void sample_without_end(World& meeting) {
  auto const world = world_on_gpu(1);
  bench::Lockstep ranks(*world);
  cudaEvent_t event;
  check_cuda(cudaEventCreate(&event), "an event");
  ranks.meet(stream_number(1));
  if (meeting.rank() == 1) hold_fake_gpu();
  check_cuda(cudaEventRecord(event, stream_number(1)), "an event");
  ranks.await(event);
  ranks.meet(stream_number(1));
  world->check();
  throw std::runtime_error("nobody said that the sample did not end");
}

int timeline_ranks(std::filesystem::path const& path) {
  std::set<int> ranks;
  for (Span const& span : read_chrome_json(path).spans) ranks.insert(span.rank);
  return static_cast<int>(ranks.size());
}

// The whole suite by real ranks, but for the figures: all methods in the same order on all ranks, every output right.
void suite_of_ranks(World&) {
  auto const world = world_on_gpu(10);
  Team& team = world->team();
  TemporaryFolder const folder;
  auto const workload = [&](std::string name, std::string op, std::string plans) {
    return fmt::format(R"({{"name": "{}", "op": "{}", "n": 96, "k": 96, "m": [1, 7, 64], "tp": [{}], "dtype": ["bf16"],
        "tier": "core", "why": "a test", "weight": "[out,in]", "epilogue": "none", "plans": [{}]}})",
                       name, op, world->size(), plans);
  };
  std::ofstream(folder / "w.json") << R"({"workloads": [)"
                                   << workload("ag", "ag_gemm", R"("transport=pull", "path=ring", "transport=remote")")
                                   << "," << workload("rs", "gemm_rs", R"("route=stage", "route=ring")") << ","
                                   << workload("ar", "gemm_ar", R"("shots=one", "shots=two")") << "]}";
  bench::OverlapSuite options;
  options.workloads = folder / "w.json", options.cublaslt = FLUX_FAKE_CUBLASLT, options.ranks = world->size();
  options.world = world.get(), options.nccl = &team.gpu()->nccl_beside(team.bootstrap(), 10);
  options.rounds = 2, options.cold = options.budget = true;
  if (world->rank() == 0)
    options.timeline = folder / "t.json";  // the others take part, and write nothing
  else
    options.timeline = "/nowhere/t.json";
  options.note = options.complain = [](std::string const& text) { throw std::runtime_error(text); };
  std::map<std::string, int> seen;
  for (bench::Unit const& unit : bench::overlap_suite(options))
    for (ResultRow const& row : unit.measure()) {
      ++seen[row.op + " " + row.method];
      bool const right = row.error && *row.error < 6e-3;
      if (row.method != "beside" && row.method != "flux_open" && !right)
        throw std::runtime_error(fmt::format("{} {} m={} {} {}: error {}", row.workload, row.method, row.m, row.variant,
                                             row.timing, row.error.value_or(-1)));
      if (row.world != "processes" || row.link != "nvlink" || row.incoming || row.samples != 2)
        throw std::runtime_error(fmt::format("a row of {} over {}", row.world, row.link));
    }
  // Three m, cold and warm, replayed and enqueued; recorded calls are rows of those that are enqueued.
  std::map<std::string, int> const want = {
      {"ag_gemm none", 12},     {"ag_gemm nccl", 12},      {"ag_gemm beside", 12},    {"ag_gemm chunked", 12},
      {"ag_gemm flux", 48 + 6}, {"ag_gemm flux_open", 12}, {"gemm_rs none", 12},      {"gemm_rs nccl", 12},
      {"gemm_rs chunked", 12},  {"gemm_rs flux", 36 + 6},  {"gemm_rs flux_open", 12}, {"gemm_ar none", 12},
      {"gemm_ar nccl", 12},     {"gemm_ar flux", 36 + 6},  {"gemm_ar flux_open", 12}};
  if (seen != want)
    for (auto const& [what, count] : want)
      if (seen[what] != count) throw std::runtime_error(fmt::format("{} rows of {}, not {}", seen[what], what, count));
  if (world->rank() == 0 && timeline_ranks(folder / "t-ag-m64.json") != world->size())
    throw std::runtime_error("a timeline lacks ranks");
  world->barrier();
}

// NCCL's collectives beside links that work; afterwards operators still use the links.
void beside_nccl(World&) {
  auto const world = world_on_gpu(10);
  Team& team = world->team();
  Nccl& nccl = team.gpu()->nccl_beside(team.bootstrap(), 10);
  if (&nccl != &team.gpu()->nccl_beside(team.bootstrap(), 10)) throw std::runtime_error("NCCL was opened twice");
  if (team.gpu()->nccl()) throw std::runtime_error("the links are not used any more");
  if (nccl_version() != "2.28.9") throw std::runtime_error("its version is " + nccl_version());
  int const rank = world->rank(), ranks = world->size();
  for (int64_t m : {1, 2, 7, 48}) {
    Whole const whole{m, 16, ranks};
    Shards const shards{m, ranks, 1};
    Numbers all(m * whole.n, Eigen::bfloat16(99)), mine = whole.own(whole.rows(), rank);
    std::ranges::copy(mine, all.begin() + shards.begin(rank) * whole.n);
    nccl.all_gather(reinterpret_cast<std::byte*>(all.data()), shards, whole.n * 2, nullptr);
    expect_equal(all.data(), whole.rows(), fmt::format("gathered, m={}", m));
    Numbers const partials = whole.partials(rank), want = whole.own(whole.sums(), rank);
    auto const* const from = reinterpret_cast<std::byte const*>(partials.data());
    Numbers out(want.size() + 1, Eigen::bfloat16(99));
    nccl.reduce_scatter(from, reinterpret_cast<std::byte*>(out.data()), shards, whole.n, DType::kBF16, nullptr);
    expect_equal(out.data(), want, fmt::format("scattered, m={}", m));
    nccl.all_reduce(from, reinterpret_cast<std::byte*>(all.data()), m * whole.n, DType::kBF16, nullptr);
    expect_equal(all.data(), whole.sums(), fmt::format("reduced, m={}", m));
  }
  bench::Lockstep(*world).meet(stream_number(1));  // through memory that the ranks share
  world->barrier();
}

}  // namespace

std::vector<Program> bench_programs() {
  return {
      {"beside_nccl", 3, 10, beside_nccl},
      {"lockstep", 3, 10, lockstep},
      {"suite2", 2, 10, suite_of_ranks},
      {"suite3", 3, 10, suite_of_ranks},
      {"sample_without_end", 3, 10, sample_without_end, kHostEngine, 5},
      {"exchanges2", 2, 10, exchanges},
      {"exchanges5", 5, 10, exchanges},
  };
}

}  // namespace flux::test
