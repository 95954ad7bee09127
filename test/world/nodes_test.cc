// Which ranks make a node: by their hosts, or as somebody says.
#include "world/nodes.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "error_of.h"
#include "flux/world.h"

namespace flux::test {
namespace {

using Hosts = std::vector<std::string>;

TEST(Nodes, AreTheHostsOfTheRanks) {
  EXPECT_EQ(nodes_of(Hosts{"a"}), Nodes(1, 1));
  EXPECT_EQ(nodes_of(Hosts{"a", "a", "a"}), Nodes(3, 1));
  EXPECT_EQ(nodes_of(Hosts{"a", "a", "b", "b"}), Nodes(4, 2));
  EXPECT_EQ(nodes_of(Hosts{"c", "b", "a"}), Nodes(3, 3));
}

TEST(Nodes, NumberRanksByNodeAndPosition) {
  Nodes const nodes(6, 2);
  EXPECT_EQ(nodes.size(), 3);
  EXPECT_EQ(nodes.node(4), 1);
  EXPECT_EQ(nodes.position(4), 1);
  EXPECT_EQ(nodes.gateway(0, 4), 1);
  EXPECT_EQ(nodes.gateway(5, 1), 4);
  EXPECT_EQ(std::vector<int>(nodes.neighbours(4).begin(), nodes.neighbours(4).end()), (std::vector<int>{3, 4, 5}));
  EXPECT_TRUE(nodes.share_memory(3, 5));
  EXPECT_FALSE(nodes.share_memory(2, 3));
}

TEST(Nodes, OfDifferentSizesAreRefused) {
  std::string const said = invalid([] { nodes_of(Hosts{"a", "a", "a", "b"}); });
  EXPECT_NE(said.find("node 0 has 3 ranks and node 1 has 1"), std::string::npos) << said;
}

TEST(Nodes, WhoseRanksDoNotFollowEachOtherAreRefused) {
  std::string const said = invalid([] { nodes_of(Hosts{"a", "b", "a", "b"}); });
  EXPECT_NE(said.find("ranks 0 and 2 are on one node and rank 1"), std::string::npos) << said;
}

int nodes_in_a_world_of(int ranks, int nodes) {
  int found = 0;
  WorldOptions options;
  options.nodes = nodes, options.limit_seconds = 5;
  run_threads(ranks, options, [&](World& world) {
    if (world.rank() == 0) found = world.nodes();
    world.barrier();
  });
  return found;
}

TEST(Nodes, AreFoundOrSaidByOptionOrEnvironment) {
  EXPECT_EQ(nodes_in_a_world_of(4, 0), 1);
  EXPECT_EQ(nodes_in_a_world_of(4, 4), 4);
  setenv("FLUX_NODES", "2", 1);
  EXPECT_EQ(nodes_in_a_world_of(4, 0), 2);
  EXPECT_EQ(nodes_in_a_world_of(4, 1), 1);
  for (char const* wrong : {"3", "0", "-2", "two", "8"}) {
    setenv("FLUX_NODES", wrong, 1);
    std::string const said = invalid([] { nodes_in_a_world_of(4, 0); });
    EXPECT_NE(said.find(std::string(wrong) + " nodes are asked for (FLUX_NODES)"), std::string::npos) << said;
  }
  unsetenv("FLUX_NODES");
}

TEST(Nodes, OfWhichRanksThinkDifferentlyAreRefused) {
  auto const mixed = [] {
    WorldOptions options;
    options.limit_seconds = 5;
    run_threads(4, options, [](World& world) {
      WorldOptions other;
      other.nodes = world.rank() == 0 ? 2 : 4, other.limit_seconds = 5;
      auto gather = [&](std::string_view mine) { return world.all_gather(mine); };
      World::processes(bootstrap_from(world.rank(), world.size(), gather), other);
    });
  };
  std::string const said = invalid(mixed);
  EXPECT_NE(said.find("give all ranks the same FLUX_NODES"), std::string::npos) << said;
}

}  // namespace
}  // namespace flux::test
