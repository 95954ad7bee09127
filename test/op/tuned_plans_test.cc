// Operators whose plan leaves the choice go by rank 0's table, alike on every rank.
#include "op/tuned_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "error_of.h"
#include "temporary_folder.h"
#include "world/bootstrap.h"
#include "world/team.h"

namespace flux::test {
namespace {

constexpr int kRanks = 3;
constexpr GemmReduceScatter::Shape kSum{96, 48, DType::kF32, 72};
constexpr AllGatherGemm::Shape kGather{96, 48, DType::kF32, 72};
std::string const kHost = "host 1 processors declared";

std::string file_of(Problem const& problem, char const* plan, std::vector<Machine> const& machines = {}) {
  PlanCache cache;
  cache.put({kHost, problem, parse_plan(plan), 100});
  for (Machine const& machine : machines) cache.put(machine);
  return cache.text();
}
Problem sum_problem() { return problem_of(Op::kGemmReduceScatter, kSum, kRanks); }

WorldOptions reading(std::filesystem::path const& file) {
  WorldOptions options;
  options.limit_seconds = 20, options.plan_cache = file.string();
  return options;
}

/// The plan of the same operator on each rank.
template <class Make>
std::vector<std::string> plans_of(WorldOptions const& options, Make&& make) {
  std::vector<std::string> plans(kRanks);
  run_threads(kRanks, options, [&](World& world) { plans[world.rank()] = to_string(make(world)->plan()); });
  return plans;
}
std::vector<std::string> everywhere(char const* line) {
  return std::vector<std::string>(kRanks, to_string(parse_plan(line)));
}
auto sums(Plan const& plan = {}) {
  return [=](World& world) { return std::make_unique<GemmReduceScatter>(world, kSum, plan); };
}

/// y = reduce_scatter(x wᵀ) of ones is k everywhere.
void expect_right(World& world, GemmReduceScatter& op) {
  int64_t const k = part_of_columns(kSum.k, world.rank(), world.size()).size,
                rows = part_of_rows(kSum.max_m, world.rank(), world.size()).size;
  std::vector<float> x(kSum.max_m * k, 1), w(kSum.n * k, 1), y(rows * kSum.n);
  op.run(kSum.max_m, matrix(x.data(), DType::kF32, kSum.max_m, k), matrix(w.data(), DType::kF32, kSum.n, k),
         WeightLayout::kOutIn, matrix(y.data(), DType::kF32, rows, kSum.n));
  for (float value : y) ASSERT_EQ(value, static_cast<float>(kSum.k));
}

TEST(TunedPlans, TheSameProblemTakesItsPlanWithTheCallersResources) {
  TemporaryFolder folder;
  auto const file = folder.file("plans.json", file_of(sum_problem(), "route=stage comm_rows=16 tile=16x24"));
  EXPECT_EQ(plans_of(reading(file), sums()), everywhere("route=stage comm_rows=16 tile=16x24"));
  EXPECT_EQ(plans_of(reading(file), sums(parse_plan("buffers=1 workers=2"))),
            everywhere("route=stage comm_rows=16 tile=16x24 buffers=1 workers=2"));
  EXPECT_EQ(plans_of(reading(file), sums(parse_plan("route=push"))), everywhere("route=push")) << "a choice of its own";
  EXPECT_EQ(plans_of(reading("none"), sums()), everywhere(""));
  EXPECT_EQ(plans_of(reading(folder / "nowhere"), sums()), everywhere(""));
  run_threads(kRanks, reading(file), [](World& world) {
    GemmReduceScatter op(world, kSum);
    for (int i = 0; i < 5; ++i) expect_right(world, op);
    EXPECT_EQ(GemmReduceScatter::memory(world, kSum).total(),
              GemmReduceScatter::memory(world, kSum, op.plan()).total());
    EXPECT_NE(GemmReduceScatter::memory(world, kSum).total(),
              GemmReduceScatter::memory(world, kSum, parse_plan("route=push")).total());
  });
}

TEST(TunedPlans, EveryOperatorAsks) {
  TemporaryFolder folder;
  PlanCache cache;
  cache.put({kHost, problem_of(kGather, kRanks), parse_plan("transport=pull comm_rows=8"), 1});
  cache.put({kHost, problem_of(Op::kGemmAllReduce, kSum, kRanks), parse_plan("shots=one"), 1});
  WorldOptions const options = reading(folder.file("plans.json", cache.text()));
  EXPECT_EQ(plans_of(options, [](World& w) { return std::make_unique<AllGatherGemm>(w, kGather); }),
            everywhere("transport=pull comm_rows=8"));
  EXPECT_EQ(plans_of(options, [](World& w) { return std::make_unique<GemmAllReduce>(w, kSum); }),
            everywhere("shots=one"));
  EXPECT_EQ(plans_of(options, sums()), everywhere("")) << "of another operator";
  AllGatherGemm::Shape unknown = kGather;
  unknown.n = 0;
  EXPECT_EQ(plans_of(options, [&](World& w) { return std::make_unique<AllGatherGemm>(w, unknown); }), everywhere(""));
}

// A near m lends its plan where the simulator, on the machine that the file keeps, expects it to be faster.
TEST(TunedPlans, ANearProblemLendsItsPlan) {
  TemporaryFolder folder;
  Problem near = sum_problem();
  near.m = 64;
  LinkRates const link{LinkKind::kDeclared, 5, 5, 0.05, 5, 5, 0, 1, 0, 1, 5, 10, 1};
  Machine slow_stores;
  slow_stores.name = "a host", slow_stores.source = "made up", slow_stores.engine = EngineKind::kHost;
  slow_stores.processors = 1, slow_stores.products = 16, slow_stores.memory_gbps = 20;
  slow_stores.clock_mhz = slow_stores.sustained_mhz = 3000;
  slow_stores.gemm_us = slow_stores.call_us = 5, slow_stores.link = link;
  ASSERT_EQ(key(slow_stores), kHost);
  ASSERT_LT(simulate(sum_problem(), parse_plan("route=stage"), slow_stores).total_us,
            simulate(sum_problem(), {}, slow_stores).total_us);
  auto const with = [&](std::vector<Machine> const& machines) {
    return plans_of(reading(folder.file("plans.json", file_of(near, "route=stage", machines))), sums());
  };
  EXPECT_EQ(with({slow_stores}), everywhere("route=stage"));
  EXPECT_EQ(with({}), everywhere("")) << "no machine to compare by";
  near.m = 8;
  EXPECT_EQ(with({slow_stores}), everywhere("")) << "too far away";
}

// Each rank with a file of its own: rank 0's counts, also where it has none.
TEST(TunedPlans, RankZerosTableCounts) {
  TemporaryFolder folder;
  auto const stage = folder.file("stage.json", file_of(sum_problem(), "route=stage"));
  auto const naive = folder.file("naive.json", file_of(sum_problem(), "order=naive"));
  auto const torn = folder.file("torn.json", "{\"kind\"");
  auto of_ranks = [](std::vector<std::filesystem::path> const& files) {
    auto point = std::make_shared<MeetingPoint>(kRanks);
    std::vector<std::string> plans(kRanks);
    std::vector<std::thread> ranks;
    for (int r = 0; r < kRanks; ++r)
      ranks.emplace_back([&, r] {
        World world(std::make_unique<Team>(std::make_unique<ThreadBootstrap>(point, r, kRanks), Nodes(kRanks),
                                           MemoryKind::kHeap, reading(files[r])));
        GemmReduceScatter op(world, kSum);
        expect_right(world, op);
        plans[r] = to_string(op.plan());
      });
    for (std::thread& rank : ranks) rank.join();
    return plans;
  };
  EXPECT_EQ(of_ranks({stage, naive, torn}), everywhere("route=stage"));
  EXPECT_EQ(of_ranks({naive, stage, stage}), everywhere("order=naive"));
  EXPECT_EQ(of_ranks({folder / "nowhere", stage, naive}), everywhere(""));
}

TEST(TunedPlans, AFileThatIsNoneCostsOneSentence) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "folder");
  std::string const right = file_of(sum_problem(), "route=stage");
  for (auto const& [file, says] : std::initializer_list<std::pair<std::filesystem::path, char const*>>{
           {folder.file("torn.json", right.substr(0, right.size() / 2)), "truncated"},
           {folder.file("foreign.json", "{\"workloads\": []}"), "no file of tuned plans"},
           {folder / "folder", "cannot be read"}}) {
    testing::internal::CaptureStderr();
    auto const plans = plans_of(reading(file), sums());
    std::string const said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(plans, everywhere(""));
    EXPECT_HAS(said, says);
    EXPECT_HAS(said, "going on without tuned plans");
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  }
}

TEST(TunedPlans, TunesWhereItIsAskedTo) {
  TemporaryFolder folder;
  auto const file = folder / "plans.json";
  WorldOptions options = reading(file);
  options.tune_seconds = 1;
  std::vector<std::string> const first = plans_of(options, [](World& world) {
    auto op = std::make_unique<GemmReduceScatter>(world, kSum);
    expect_right(world, *op);
    EXPECT_EQ(GemmReduceScatter(world, kSum).plan(), op->plan()) << "the table has it now";
    return op;
  });
  EXPECT_EQ(first, std::vector<std::string>(kRanks, first[0]));
  PlanCache const kept = PlanCache::read(file);
  ASSERT_EQ(kept.plans().size(), 1u) << kept.note();
  EXPECT_EQ(to_string(kept.plans()[0].plan), first[0]);
  EXPECT_EQ(kept.plans()[0].problem, sum_problem());
  EXPECT_EQ(plans_of(reading(file), sums()), first) << "another world finds it";
  plans_of(options, [](World& world) { return std::make_unique<AllGatherGemm>(world, kGather); });
  EXPECT_EQ(PlanCache::read(file).plans().size(), 2u);
}

TEST(TunedPlans, APlaceThatCannotBeWrittenDoesNotKeepItFromTuning) {
  TemporaryFolder folder;
  WorldOptions options = reading(folder.file("file", "") / "plans.json");
  options.tune_seconds = 0.1;
  testing::internal::CaptureStderr();
  auto const plans = plans_of(options, sums());
  std::string const said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(plans, std::vector<std::string>(kRanks, plans[0]));
  EXPECT_HAS(said, "not kept");
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
}

}  // namespace
}  // namespace flux::test
