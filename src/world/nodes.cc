#include "world/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "world/together.h"

namespace flux {
namespace {

// Memory is mapped through /proc, so a node is a running kernel and what sees the same processes.
std::string host() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, boot);
  std::error_code unknown;
  return boot + " " + std::filesystem::read_symlink("/proc/self/ns/pid", unknown).string();
}

// 0: not said.
int said_nodes(int ranks, int option) {
  char const* const text = std::getenv("FLUX_NODES");
  if (option == 0 && (!text || !*text)) return 0;
  char* end = nullptr;
  int64_t const nodes = option != 0 ? option : std::strtol(text, &end, 10);
  if ((end && *end) || nodes < 1 || nodes > ranks || ranks % nodes != 0)
    throw Error(ErrorKind::kInvalid,
                fmt::format("{} nodes are asked for ({}) and the world has {} ranks; nodes have the same number of "
                            "ranks each, so give a number that divides {}",
                            option != 0 ? fmt::format("{}", option) : text,
                            option != 0 ? "WorldOptions::nodes" : "FLUX_NODES", ranks, ranks));
  return static_cast<int>(nodes);
}

}  // namespace

Nodes nodes_of(std::vector<std::string> const& hosts) {
  int const ranks = static_cast<int>(hosts.size());
  std::vector<int> sizes;
  for (int r = 0; r < ranks; ++r) {
    if (r > 0 && hosts[r] == hosts[r - 1]) {
      ++sizes.back();
      continue;
    }
    int const earlier = static_cast<int>(std::find(hosts.begin(), hosts.begin() + r, hosts[r]) - hosts.begin());
    if (earlier < r)
      throw Error(ErrorKind::kInvalid,
                  fmt::format("ranks {} and {} are on one node and rank {} between them is on another; ranks of a node "
                              "follow each other, as torchrun and mpirun --map-by slot place them",
                              earlier, r, r - 1));
    sizes.push_back(1);
  }
  auto const other = std::ranges::find_if(sizes, [&](int size) { return size != sizes[0]; });
  if (other != sizes.end())
    throw Error(ErrorKind::kInvalid,
                fmt::format("node 0 has {} ranks and node {} has {}; start the same number of ranks on every node",
                            sizes[0], other - sizes.begin(), *other));
  return {ranks, static_cast<int>(sizes.size())};
}

Nodes find_nodes(Bootstrap& bootstrap, WorldOptions const& options) {
  int said = 0;
  together(bootstrap, options.limit_seconds, [&] { said = said_nodes(bootstrap.size(), options.nodes); });
  auto const all = bootstrap.all_gather(said > 0 ? fmt::format("{} nodes", said) : host(), options.limit_seconds);
  if (said == 0) return nodes_of(all);
  for (int r = 0; r < bootstrap.size(); ++r)
    if (all[r] != all[0])
      throw Error(ErrorKind::kInvalid, fmt::format("rank 0 is told of {} and rank {} of another number; give all ranks "
                                                   "the same FLUX_NODES and WorldOptions::nodes",
                                                   all[0], r));
  return {bootstrap.size(), said};
}

}  // namespace flux
