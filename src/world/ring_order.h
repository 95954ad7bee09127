#pragma once
// In which order ranks take the GPUs of a machine. Rings go from rank to the next rank, and copies to the next ranks
// first; so GPUs of one NUMA node go to ranks that follow each other, and as few hops as can be cross the link between
// sockets.
#include <algorithm>
#include <numeric>
#include <vector>

namespace flux {

inline constexpr int kUnknownNode = -1;

/// `nodes`: the NUMA node of each GPU. Rank r takes GPU ring_order(nodes)[r]: nodes in the order of their first GPU,
/// GPUs of a node in theirs. Where a node is not known, GPUs keep their order.
inline std::vector<int> ring_order(std::vector<int> const& nodes) {
  std::vector<int> order(nodes.size());
  std::iota(order.begin(), order.end(), 0);
  if (std::ranges::find(nodes, kUnknownNode) != nodes.end()) return order;
  auto const first = [&](int gpu) { return std::ranges::find(nodes, nodes[gpu]) - nodes.begin(); };
  std::ranges::stable_sort(order, {}, first);
  return order;
}

/// Hops of the ring in this order that lead from one node to another.
inline int crossings(std::vector<int> const& order, std::vector<int> const& nodes) {
  int count = 0;
  for (size_t i = 0; i < order.size(); ++i) count += nodes[order[i]] != nodes[order[(i + 1) % order.size()]];
  return count;
}

}  // namespace flux
