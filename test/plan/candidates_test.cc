// What is chosen on machines made up so that the answer is known, and what is said of the rest.
#include "plan/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "error_of.h"
#include "plan/random_problem.h"

namespace flux {
namespace {

Problem const kFc1{Op::kAllGatherGemm, 4096, 49152, 12288, 8}, kFc2{Op::kGemmReduceScatter, 4096, 12288, 49152, 8};

/// An H800 whose links are `times` as fast.
Machine with_links(double times, LinkKind kind = LinkKind::kNvlink) {
  Machine m = find_machine("h800");
  LinkRates& l = m.link;
  l.kind = kind;
  for (double* rate : {&l.push_gbps, &l.pull_gbps, &l.store_gbps, &l.load_gbps, &l.block_gbps, &l.collective_gbps})
    *rate *= times;
  return m;
}

Candidate const* first(Ranking const& ranking, std::string_view words, bool out) {
  for (Candidate const& c : ranking.candidates)
    if (!c.chosen_from() == out && short_line(c.plan).find(words) != std::string::npos) return &c;
  return nullptr;
}

/// Pure and slow: nothing for ThreadSanitizer.
class Candidates : public testing::Test {
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "one thread";
#endif
  }
};

TEST_F(Candidates, FusesWhereThereIsSomethingToHide) {
  for (Problem const& problem : {kFc1, kFc2}) {
    Ranking const ranking = rank_candidates(problem, find_machine("h800"));
    EXPECT_TRUE(ranking.best().plan.fused);
    EXPECT_LT(ranking.best().total_us, ranking.parts.none_us);
    EXPECT_GE(ranking.best().total_us, ranking.parts.floor_us());
  }
}

TEST_F(Candidates, DoesNotFuseWhereThatCostsMoreThanItHides) {
  Machine machine = with_links(50);
  machine.link.copy_us = machine.link.word_us = machine.link.start_us = machine.link.flag_us = 0;
  machine.link.load_gbps = 10;
  machine.beside = 0.1;  // tiles all but stand still while copies run
  Ranking const ranking = rank_candidates(kFc1, machine);
  EXPECT_FALSE(ranking.best().plan.fused) << to_string(ranking.best().plan);
  EXPECT_NE(first(ranking, "comm_rows", false), nullptr) << "the fused ones are there, and slower";
}

// A hop more costs the first piece's time once, and what reads or adds at a peer is refused.
TEST_F(Candidates, OnlyCopiesGoThroughHostMemory) {
  Machine const pcie = with_links(0.05, LinkKind::kPcie), host = with_links(0.05, LinkKind::kHost);
  for (Problem const& problem : {kFc1, kFc2}) {
    Ranking const ranking = rank_candidates(problem, host);
    double const direct = rank_candidates(problem, pcie).best().total_us,
                 shard =
                     static_cast<double>(problem.m / problem.ranks * problem.row_bytes()) / host.link.push_gbps / 1e3;
    EXPECT_GT(ranking.best().total_us, direct) << to_string(ranking.best().plan);
    EXPECT_LT(ranking.best().total_us, direct + shard) << to_string(ranking.best().plan);
    EXPECT_EQ(first(ranking, "copies=8", false), nullptr);
    EXPECT_NE(first(ranking, "fused=no", false), nullptr) << "not to fuse stays a choice";
  }
  auto refusal = [&](Problem const& problem, std::string_view plan) {
    return error_of(ErrorKind::kUnsupported, [&] { resolve(problem, parse_plan(plan), host); });
  };
  EXPECT_HAS(refusal(kFc1, "transport=remote"), "ranks meet in host memory");
  EXPECT_HAS(refusal(kFc2, "route=ring"), "ranks meet in host memory");
  EXPECT_HAS(refusal(kFc2, "route=stage copies=8"), "use copies=auto");
}

TEST_F(Candidates, StagesWhereStoresToAPeerAreSlow) {
  Machine machine = with_links(1);
  machine.link.store_gbps = 10;
  EXPECT_EQ(rank_candidates(kFc2, machine).best().plan.route, RouteKind::kStage);
  machine = with_links(4);
  machine.link.push_gbps = machine.link.pull_gbps = 10;
  Plan const plan = rank_candidates(kFc2, machine).best().plan;
  EXPECT_NE(plan.route, RouteKind::kStage) << to_string(plan);
}

TEST_F(Candidates, PullsWhereReadingIsFaster) {
  Machine machine = with_links(0.3);
  machine.link.push_gbps /= 3;
  EXPECT_EQ(rank_candidates(kFc1, machine).best().plan.transport, Transport::kPull);
  machine = with_links(0.3);
  machine.link.pull_gbps /= 3;
  EXPECT_EQ(rank_candidates(kFc1, machine).best().plan.transport, Transport::kPush);
}

TEST_F(Candidates, PiecesAndCarriersFollowThePriceOfACopy) {
  Machine cheap = with_links(0.2, LinkKind::kPcie), dear = cheap;
  cheap.link.copy_us = 0.1, dear.link.copy_us = 500;
  Problem const problem{Op::kAllGatherGemm, 8192, 49152, 12288, 8};
  auto height = [&](Machine const& machine) {
    return resolve(problem, rank_candidates(problem, machine).best().plan, machine).arrival.comm_rows;
  };
  EXPECT_LT(height(cheap), 1024);
  EXPECT_GT(rank_candidates(problem, dear).best().plan.copy_blocks, 0) << "blocks of the GPU pay no engine";
}

// The operators' own rules hold until something is simulated to take 5 % less.
TEST_F(Candidates, TheRulesGiveWayToWhatIsClearlyFaster) {
  Problem const close{Op::kGemmReduceScatter, 1024, 5120, 25600, 8}, far{Op::kGemmReduceScatter, 512, 16384, 131072, 8};
  Machine const machine = find_machine("h200-pcie");
  auto least = [](Ranking const& ranking) {
    double least = ranking.best().total_us;
    for (Candidate const& c : ranking.candidates)
      if (c.chosen_from()) least = std::min(least, c.total_us);
    return least;
  };
  Ranking const stays = rank_candidates(close, machine), goes = rank_candidates(far, machine);
  EXPECT_EQ(stays.best().plan, Plan{});
  EXPECT_LT(least(stays), stays.best().total_us);
  EXPECT_NE(goes.best().plan, Plan{});
  EXPECT_LT(goes.best().total_us, simulate(far, {}, machine).total_us / 1.065);
}

TEST_F(Candidates, PlansThatAreNamedAreSimulatedAloneHoweverSlow) {
  std::vector<Plan> const plans = {parse_plan("tile=64x64"), parse_plan("fused=no"), {}};
  Machine const machine = find_machine("h800");
  Ranking const ranking = rank_plans(kFc1, machine, plans);
  ASSERT_EQ(ranking.candidates.size(), 4u) << "and the libraries";
  for (Plan const& plan : plans) {
    auto const found =
        std::ranges::find_if(ranking.candidates, [&](Candidate const& c) { return c.plan == plan && !c.by_libraries; });
    ASSERT_NE(found, ranking.candidates.end()) << to_string(plan);
    EXPECT_EQ(found->total_us, simulate(kFc1, plan, machine).total_us);
  }
}

TEST_F(Candidates, EachRejectionSaysWhy) {
  Ranking const h800 = rank_candidates(kFc2, find_machine("h800")), pcie = rank_candidates(kFc2, find_machine("l20"));
  auto why = [](Ranking const& ranking, std::string_view words) {
    Candidate const* c = first(ranking, words, true);
    return c ? c->out : "not there";
  };
  EXPECT_HAS(why(h800, "route=sum"), "bits differ from run to run");
  EXPECT_HAS(why(pcie, "route=sum"), "no native atomics across PCIe");
  EXPECT_HAS(why(h800, "tile=64x64"), "its GEMM alone takes");
  auto libraries = std::ranges::find_if(h800.candidates, [](Candidate const& c) { return c.by_libraries; });
  ASSERT_NE(libraries, h800.candidates.end());
  EXPECT_EQ(libraries->total_us, h800.parts.none_us);
}

TEST_F(Candidates, ThePlanIsALineThatCanBeGivenBack) {
  RandomProblems random(7);
  for (int i = 0; i < 25; ++i) {
    Problem problem = random.problem();
    problem.m = 1 + problem.m % 1500;
    Machine const& machine = random.machine();
    SCOPED_TRACE(to_string(problem) + " on " + machine.name);
    Ranking const ranking = rank_candidates(problem, machine);
    Plan const plan = parse_plan(to_string(ranking.best().plan));
    EXPECT_EQ(plan, ranking.best().plan);
    EXPECT_EQ(simulate(problem, plan, machine).total_us, ranking.best().total_us);
    double const over = ranking.best().plan == Plan{} ? 1.0651 : 1.0051;
    EXPECT_LE(ranking.best().total_us, 1.005 * simulate(problem, {}, machine).total_us) << "the operators' own choice";
    EXPECT_GE(ranking.best().total_us, ranking.parts.floor_us());
    for (Candidate const& c : ranking.candidates)
      EXPECT_TRUE(!c.chosen_from() || ranking.best().total_us <= over * c.total_us) << to_string(c.plan);
  }
}

// What may change with the model on purpose only.
TEST_F(Candidates, GoldenChoices) {
  struct Golden {
    Problem problem;
    char const *machine, *plan;
  };
  for (auto const& [problem, machine, plan] : std::initializer_list<Golden>{
           {kFc1, "h800", "all knobs auto"},
           {kFc2, "h800", "route=stage"},
           {kFc1, "a100-pcie", "all knobs auto"},
           {kFc2, "a100-pcie", "all knobs auto"},
           {{Op::kAllGatherGemm, 64, 49152, 12288, 8}, "h200", "all knobs auto"},
           {{Op::kGemmAllReduce, 64, 8192, 28672, 8}, "h200", "all knobs auto"},
       })
    EXPECT_EQ(short_line(rank_candidates(problem, find_machine(machine)).best().plan), plan)
        << to_string(problem) << " on " << machine;
}

}  // namespace
}  // namespace flux
