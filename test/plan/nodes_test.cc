// The second level: what lies between nodes has a rate and a latency of its own.
#include <gtest/gtest.h>

#include <algorithm>

#include "error_of.h"
#include "plan/candidates.h"

namespace flux {
namespace {

Problem two_nodes(Op op, int64_t m) {
  bool const gathers = op == Op::kAllGatherGemm;
  Problem p{op, m, gathers ? 49152 : 12288, gathers ? 12288 : 49152, 16};
  p.nodes = 2;
  return p;
}
constexpr Op kOps[] = {Op::kAllGatherGemm, Op::kGemmReduceScatter, Op::kGemmAllReduce};

TEST(Nodes, AsManyAsTheRanksTake) {
  Machine machine = find_machine("h800");
  EXPECT_EQ(machine.nodes_of(8), 1);
  EXPECT_EQ(machine.nodes_of(9), 2);
  EXPECT_EQ(machine.nodes_of(16), 2);
  machine.nic_gbps = 0;
  EXPECT_EQ(machine.nodes_of(16), 1);
}

TEST(Nodes, SendWhatAHierarchyNeeds) {
  Problem const p = two_nodes(Op::kAllGatherGemm, 8192);
  double const all = 8192.0 * 12288 * 2;
  EXPECT_DOUBLE_EQ(p.sent_bytes(), all * 7 / 8);
  EXPECT_DOUBLE_EQ(p.rail_bytes(), all / 16);
  EXPECT_DOUBLE_EQ(two_nodes(Op::kGemmAllReduce, 8192).rail_bytes(), 2 * all / 16);
}

TEST(Nodes, WithASlowInterfaceTakeItsTime) {
  Machine machine = find_machine("h800");
  machine.nic_gbps = 1;
  for (Op op : kOps) {
    Problem const p = two_nodes(op, 4096);
    double const rails_us = p.rail_bytes() / machine.nic_gbps / 1e3;
    double const shots = op == Op::kGemmAllReduce ? 2 : 1;
    EXPECT_NEAR(parts(p, machine).comm_us, rails_us + shots * machine.nic_us, 1e-6 * rails_us) << name(op);
    double const total = simulate(p, {}, machine).total_us;
    EXPECT_GE(total, rails_us) << name(op);
    EXPECT_LE(total, 1.5 * (rails_us + parts(p, machine).gemm_us)) << name(op);
  }
}

// A node's interface is idle no longer than the rest lets it: a faster one never makes a call longer.
TEST(Nodes, WithAFasterInterfaceTakeNoLonger) {
  for (Op op : kOps) {
    double before = 1e9;
    for (double gbps : {2.0, 10.0, 50.0, 250.0}) {
      Machine machine = find_machine("h800");
      machine.nic_gbps = gbps;
      double const total = simulate(two_nodes(op, 4096), {}, machine).total_us;
      EXPECT_LE(total, before) << name(op) << " " << gbps;
      before = total;
    }
  }
}

TEST(Nodes, HideTheRailBehindTheGemm) {
  for (Op op : {Op::kAllGatherGemm, Op::kGemmReduceScatter}) {
    Ranking const ranking = rank_candidates(two_nodes(op, 8192), find_machine("a100-sxm"));
    EXPECT_TRUE(ranking.best().plan.fused) << name(op);
    EXPECT_LT(ranking.best().total_us, 1.15 * ranking.parts.floor_us()) << name(op);
    EXPECT_TRUE(std::ranges::any_of(ranking.candidates, [](Candidate const& c) { return c.by_libraries; }));
    EXPECT_TRUE(std::ranges::any_of(ranking.candidates, [](Candidate const& c) { return !c.plan.fused; }));
  }
}

TEST(Nodes, WhatTheyCannotDoSaysSo) {
  auto refusal = [](Problem const& p, char const* plan, Machine const& machine) {
    return error_of(ErrorKind::kUnsupported, [&] { simulate(p, parse_plan(plan), machine); });
  };
  Machine const h800 = find_machine("h800");
  EXPECT_HAS(refusal(two_nodes(kOps[0], 64), "transport=pull", h800), "between nodes rows are pushed");
  EXPECT_HAS(refusal(two_nodes(kOps[0], 64), "path=ring", h800), "between nodes rows are pushed");
  EXPECT_HAS(refusal(two_nodes(kOps[1], 64), "route=ring", h800), "each node sums before it sends");
  EXPECT_HAS(refusal(two_nodes(kOps[2], 64), "shots=one", h800), "shots=two");
  Machine alone = h800;
  alone.nic_gbps = 0;
  EXPECT_HAS(refusal(two_nodes(kOps[0], 64), "", alone), "give nic_gbps and nic_us");
  Problem odd = two_nodes(kOps[0], 64);
  odd.nodes = 3;
  EXPECT_HAS(invalid([&] { simulate(odd, {}, h800); }), "16 ranks do not make 3 nodes");
}

}  // namespace
}  // namespace flux
