// The tuner against a clock that is played, and what it keeps.
#include "plan/tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "error_of.h"
#include "plan/plan_cache.h"
#include "temporary_folder.h"

namespace flux {
namespace {

Problem problem(int64_t m) { return {Op::kGemmReduceScatter, m, 4096, 4096, 4}; }
Machine const& h800() {
  static Machine const machine = find_machine("h800");
  return machine;
}

/// Times as simulated, except where a test knows better.
class Played : public PlanTiming {
 public:
  explicit Played(Problem const& problem) : problem_(problem) {}
  std::map<std::string, double> times;  // of short lines; < 0: does not run
  std::vector<std::string> asked;
  bool noisy = false;

  std::optional<double> time_us(Plan const& plan) override {
    asked.push_back(short_line(plan));
    if (auto const known = times.find(short_line(plan)); known != times.end())
      return known->second < 0 ? std::nullopt : std::optional(known->second);
    double const us = simulate(problem_, plan, h800()).total_us;
    return noisy ? us * (1 + 0.02 * static_cast<double>(asked.size() % 5)) : us;
  }

 private:
  Problem problem_;
};

TEST(Tuner, WhatIsMeasuredBeatsWhatIsSimulated) {
  Ranking const ranking = rank_candidates(problem(2048), h800());
  Played clock(problem(2048));
  std::string const fifth = short_line(worth_timing(ranking, TuneOptions{}.candidates)[4].plan);
  clock.times[fifth] = ranking.best().total_us / 2;
  clock.noisy = true;
  Tuned const tuned = tune(ranking, clock, {});
  EXPECT_EQ(short_line(tuned.best().candidate.plan), fifth);
  EXPECT_EQ(tuned.rounds, 7);
  for (TimedPlan const& plan : tuned.timed) EXPECT_EQ(plan.us.size(), 7u);
}

TEST(Tuner, NotFusingIsAlwaysTimed) {
  Ranking const ranking = rank_candidates(problem(2048), h800());
  Played clock(problem(2048));
  clock.times["fused=no"] = 1;
  TuneOptions options;
  options.candidates = 3;
  Tuned const tuned = tune(ranking, clock, options);
  EXPECT_EQ(tuned.timed.size(), 5u) << "the operators' own rules too";
  EXPECT_FALSE(tuned.best().candidate.plan.fused);
}

TEST(Tuner, TheOperatorsOwnRulesAreAlwaysTimed) {
  Machine const machine = find_machine("h200-pcie");
  for (int64_t m : {256, 512, 1024, 2048, 4096}) {
    Ranking const ranking = rank_candidates({Op::kAllGatherGemm, m, 28672, 4096, 8}, machine);
    for (size_t most : {size_t{1}, size_t{8}}) {
      std::vector<Candidate> const list = worth_timing(ranking, most);
      EXPECT_EQ(list.size(), most + 2);
      EXPECT_EQ(std::ranges::count(list, Plan{}, &Candidate::plan), 1) << m;
      EXPECT_EQ(std::ranges::count_if(list, [](Candidate const& c) { return !c.plan.fused; }), 1) << m;
    }
  }
}

// Eight names of one call, or eight rasters of one plan, would be one guess.
TEST(Tuner, NoTwoThatTheModelCannotTellApart) {
  Problem const problem{Op::kAllGatherGemm, 1024, 51200, 5120, 8};
  std::vector<Candidate> const list = worth_timing(rank_candidates(problem, find_machine("h200-pcie")), 8);
  std::set<double> times;
  std::set<std::pair<int, int>> tiles;
  for (Candidate const& c : list) times.insert(c.total_us), tiles.insert({c.plan.block_m, c.plan.block_n});
  EXPECT_EQ(list.size(), 10u);
  EXPECT_GE(times.size(), 9u);
  EXPECT_GE(tiles.size(), 4u);
}

TEST(Tuner, EveryRoundHasAnOrderOfItsOwn) {
  Ranking const ranking = rank_candidates(problem(2048), h800());
  Played clock(problem(2048));
  TuneOptions options;
  options.candidates = 6, options.rounds = 4;
  size_t const many = tune(ranking, clock, options).timed.size();
  ASSERT_EQ(clock.asked.size(), many * 5);
  auto round = [&](size_t r) {
    return std::vector(clock.asked.begin() + r * many, clock.asked.begin() + (r + 1) * many);
  };
  EXPECT_NE(round(1), round(2));
  Played again(problem(2048));
  tune(ranking, again, options);
  EXPECT_EQ(again.asked, clock.asked) << "the same on every rank";
}

TEST(Tuner, ABudgetEndsItAfterARound) {
  Ranking const ranking = rank_candidates(problem(2048), h800());
  Played clock(problem(2048));
  TuneOptions options;
  int ticks = 0, asked = 0;
  options.rounds = 100, options.go_on = [&] { return ++asked < 3; }, options.tick = [&] { ++ticks; };
  Tuned const tuned = tune(ranking, clock, options);
  EXPECT_EQ(tuned.rounds, 3);
  EXPECT_EQ(static_cast<size_t>(ticks), tuned.timed.size() * 4);
}

TEST(Tuner, APlanThatDoesNotRunIsLeftOut) {
  Ranking const ranking = rank_candidates(problem(2048), h800());
  Played clock(problem(2048));
  clock.times[short_line(ranking.best().plan)] = -1;
  EXPECT_NE(tune(ranking, clock, {}).best().candidate.plan, ranking.best().plan);
  for (Candidate const& c : ranking.candidates) clock.times[short_line(c.plan)] = -1;
  EXPECT_HAS(error_of(ErrorKind::kUnsupported, [&] { tune(ranking, clock, {}); }), "runs here");
}

TunedPlan tuned(int64_t m, char const* plan, double us) { return {key(h800()), problem(m), parse_plan(plan), us}; }

TEST(PlanCache, KeepsAndFindsAgain) {
  TemporaryFolder folder;
  auto const path = folder / "deep/er/plans.json";
  EXPECT_EQ(PlanCache::read(path).plans().size(), 0u);
  EXPECT_EQ(PlanCache::read(path).note(), "") << "a file that is not there yet is nothing to speak of";
  EXPECT_EQ(PlanCache::add(path, {tuned(2048, "route=stage comm_rows=256", 100)}), "");
  EXPECT_EQ(PlanCache::add(path, {tuned(4096, "route=push", 180), tuned(2048, "route=stage comm_rows=128", 90)}), "");
  PlanCache const cache = PlanCache::read(path);
  ASSERT_EQ(cache.plans().size(), 2u) << "the same problem is replaced";
  EXPECT_EQ(PlanCache::parse(cache.text(), "text").plans(), cache.plans());

  FoundPlan const exact = cache.find(problem(2048), key(h800()));
  EXPECT_EQ(exact.source, FoundPlan::Source::kTuned);
  EXPECT_EQ(exact.plan.comm_rows, 128);
  EXPECT_EQ(exact.expected_us, 90);
}

TEST(PlanCache, ANearProblemLendsItsPlanAtTheModelsCorrection) {
  PlanCache cache;
  cache.put(h800());
  Ranking const ranking = rank_candidates(problem(2500), h800());
  Plan slow;
  for (Candidate const& c : ranking.candidates)
    if (c.chosen_from()) slow = c.plan;  // the last is the slowest
  cache.put({key(h800()), problem(2048), slow, simulate(problem(2048), slow, h800()).total_us / 4});
  FoundPlan const open = cache.find(problem(2500), key(h800()));
  EXPECT_EQ(open.source, FoundPlan::Source::kOpen) << "a model that is off is off for an open plan too";
  EXPECT_EQ(open.plan, Plan{});
  EXPECT_NEAR(open.expected_us, simulate(problem(2500), {}, h800()).total_us / 4, 1e-6);
  EXPECT_EQ(cache.find(problem(64 * 2048), key(h800())).expected_us, 0) << "too far away";

  Plan const fast = ranking.best().plan;
  ASSERT_LT(simulate(problem(2500), fast, h800()).total_us, simulate(problem(2500), {}, h800()).total_us);
  cache.put({key(h800()), problem(2048), fast, 100});
  FoundPlan const same = cache.find(problem(2500), key(h800()));
  EXPECT_EQ(same.source, FoundPlan::Source::kNear);
  EXPECT_EQ(same.plan, fast);
  EXPECT_HAS(same.why, "tuned for m 2048");
}

TEST(PlanCache, NearProblemsAreComparedByTheMachineThatIsKept) {
  Machine mine = h800();
  mine.name = "mine", mine.processors = 77, mine.link.store_gbps = 5;  // of no named machine
  Plan const staged = parse_plan("route=stage");
  ASSERT_LT(simulate(problem(2500), staged, mine).total_us, simulate(problem(2500), {}, mine).total_us);
  PlanCache cache;
  cache.put({key(mine), problem(2048), staged, 100});
  EXPECT_EQ(cache.find(problem(2500), key(mine)).plan, Plan{}) << "nothing to compare by";
  cache.put(mine);
  PlanCache const again = PlanCache::parse(cache.text(), "text");
  EXPECT_EQ(again.machine(key(mine)), mine);
  EXPECT_EQ(again.find(problem(2500), key(mine)).plan, staged);
}

TEST(PlanCache, OtherMachinesAndProblemsDoNotCount) {
  PlanCache cache;
  cache.put(tuned(2048, "route=stage", 1));
  EXPECT_EQ(cache.find(problem(2048), key(find_machine("a800"))).source, FoundPlan::Source::kOpen);
  Problem other = problem(2048);
  other.n += 8;
  EXPECT_EQ(cache.find(other, key(h800())).source, FoundPlan::Source::kOpen);
  Machine renamed = h800();
  renamed.name = "mine", renamed.clock_mhz += 10;
  EXPECT_EQ(cache.find(problem(2048), key(renamed)).source, FoundPlan::Source::kTuned);
}

// Torn, foreign, of another schema, wrong inside: a sentence, and on without it. Such a file is never overwritten.
TEST(PlanCache, AFileThatIsNoCacheCostsASentence) {
  TemporaryFolder folder;
  PlanCache right;
  right.put(tuned(2048, "route=stage", 1));
  std::string const text = right.text();
  auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = text;
    return changed.replace(changed.find(from), from.size(), to);
  };
  for (auto const& [bytes, says] : std::initializer_list<std::pair<std::string, char const*>>{
           {text.substr(0, text.size() / 2), "truncated"},
           {"", "truncated"},
           {"[]", "no file of tuned plans"},
           {"{\"workloads\": []}", "no file of tuned plans"},
           {with("\"schema\": 2", "\"schema\": 7"), "schema 2"},
           {with("\"machines\": [", "\"others\": ["), "no list \"machines\""},
           {with("\"machines\": [", "\"machines\": [7"), "no object"},
           {with("route=stage", "route=teleport"), "route=teleport"},
           {with("\"m\":2048", "\"m\":-5"), "m is -5"},
           {with("\"m\":2048", "\"m\":20.5"), "whole number"},
           {with("\"tp\":4", "\"tp\":4000"), "tp is 4000"},
           {with("\"measured_us\":1.0", "\"measured_us\":-1.0"), "measured_us"},
           {with("\"gated\":false", "\"gated\":3"), "another type"},
       }) {
    auto const path = folder.file("plans.json", bytes);
    PlanCache const cache = PlanCache::read(path);
    EXPECT_TRUE(cache.plans().empty());
    EXPECT_HAS(cache.note(), says);
    EXPECT_EQ(cache.note().find('\n'), std::string::npos);
    EXPECT_EQ(cache.find(problem(512), key(h800())).source, FoundPlan::Source::kOpen);
    EXPECT_HAS(PlanCache::add(path, {tuned(1, "", 1)}), "stays as it is");
    EXPECT_EQ(bytes_of(path), bytes);
  }
}

TEST(PlanCache, APlaceThatCannotBeWrittenCostsASentence) {
  TemporaryFolder folder;
  auto const file = folder.file("file", "");
  EXPECT_HAS(PlanCache::add(file / "plans.json", {tuned(64, "", 1)}), "not kept");
  std::filesystem::create_directory(folder / "folder");
  EXPECT_HAS(PlanCache::add(folder / "folder", {tuned(64, "", 1)}), "stays as it is");
  if (geteuid() != 0) {  // root may write everywhere
    std::filesystem::permissions(folder.path(),
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    EXPECT_HAS(PlanCache::add(folder / "plans.json", {tuned(64, "", 1)}), "not kept");
    std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  }
}

TEST(PlanCache, ManyWritersLoseNothing) {
  TemporaryFolder folder;
  auto const path = folder / "plans.json";
  constexpr int kWriters = 8, kEach = 5;
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w)
    writers.emplace_back([&, w] {
      for (int i = 0; i < kEach; ++i) EXPECT_EQ(PlanCache::add(path, {tuned(1 + w * kEach + i, "", 1)}), "");
    });
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(PlanCache::read(path).plans().size(), static_cast<size_t>(kWriters * kEach));
}

}  // namespace
}  // namespace flux
