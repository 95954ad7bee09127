// The scenario list over several nodes, played by threads, with sockets between them.
#include <gtest/gtest.h>

#include "error_of.h"
#include "op/scenario.h"

namespace flux::test {
namespace {

WorldOptions options() {
  WorldOptions o;
  o.limit_seconds = 20;
  return o;
}

TEST(Nodes, EveryScenarioIsExactOnTwo) {
  for (Scenario const& s : scenarios_of(2)) EXPECT_EQ(run_on_threads(s, options()), "") << s.describe();
}

TEST(Nodes, EveryScenarioIsExactOnThree) {
  for (Scenario const& s : scenarios_of(3)) EXPECT_EQ(run_on_threads(s, options()), "") << s.describe();
}

TEST(Nodes, EveryScenarioIsExactOverDeclaredLinks) {
  WorldOptions o = options();
  o.link = {2.0, 5.0}, o.nic = {1.0, 10.0};
  for (Scenario const& s : scenarios_of(2)) EXPECT_EQ(run_on_threads(s, o), "") << s.describe();
}

TEST(Nodes, WhatTheyCannotDoIsRefused) {
  WorldOptions o = options();
  o.nodes = 2;
  auto refusal = [&](Op op, char const* plan) {
    Scenario s;
    s.op = op, s.m = 8, s.n = 16, s.k = 16, s.ranks = 4, s.nodes = 2, s.plan = parse_plan(plan);
    return invalid([&] { run_on_threads(s, o); });
  };
  for (char const* plan : {"transport=pull", "transport=remote", "path=ring"})
    EXPECT_HAS(refusal(Op::kAllGatherGemm, plan), "the world spans 2 nodes, between which rows are pushed");
  for (char const* plan : {"route=sum", "route=ring"})
    EXPECT_HAS(refusal(Op::kGemmReduceScatter, plan), "give route=push, route=stage or neither");
  EXPECT_HAS(refusal(Op::kGemmAllReduce, "shots=one"), "give shots=two or leave it out");
}

}  // namespace
}  // namespace flux::test
