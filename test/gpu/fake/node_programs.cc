// Programs over several nodes on the fake GPU, with NCCL between them played by files.
#include <fmt/format.h>

#include <stdexcept>

#include "gpu/fake/programs.h"
#include "gpu/scenario_list.h"
#include "world/team.h"

namespace flux::test {
namespace {

void scenarios(World& meeting, int nodes) {
  auto const world = world_on_gpu(10, nodes);
  if (!world->team().gpu()->spans_nodes()) throw std::runtime_error("there are no rails");
  for (Scenario const& s : scenarios_over_nodes(nodes, chip_of_device(0).engine)) {
    if (s.ranks != world->size()) continue;
    std::string const failure = run_scenario(*world, s);
    if (!failure.empty()) throw std::runtime_error(failure);
  }
  meeting.barrier();
}

// Links within nodes, and rails between them.
void world_of_nodes(World& meeting) {
  auto const world = world_on_gpu(4, 2);
  size_t within = 0;
  for (LinkProof const& link : world->links()) within += link.from / 2 == link.to / 2;
  if (world->nodes() != 2 || within != 4 || world->links().size() != within)
    throw std::runtime_error(fmt::format("{} nodes have {} links", world->nodes(), world->links().size()));
  auto const memory = world->team().allocate(64, Use::kWords);
  for (int r = 0; r < world->size(); ++r)
    if ((memory->at(r) != nullptr) != world->team().nodes().share_memory(r, world->rank()))
      throw std::runtime_error(fmt::format("rank {} and rank {} share memory or not", r, world->rank()));
  meeting.barrier();
}

}  // namespace

std::vector<Program> node_programs() {
  return {
      {"world_of_nodes", 4, 10, world_of_nodes},
      {"nodes2", 2, 20, [](World& world) { scenarios(world, 2); }},
      {"nodes4", 4, 20, [](World& world) { scenarios(world, 2); }},
      {"nodes6", 6, 20, [](World& world) { scenarios(world, 3); }},
  };
}

}  // namespace flux::test
