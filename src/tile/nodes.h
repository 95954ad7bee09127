#pragma once
// How ranks are numbered over nodes. A world spans one node or several: each has the same number of ranks, which follow
// each other. Ranks of the same position on their nodes are a rail: between nodes rows travel along rails alone, so
// that every rank's network interface carries its part.
#include <ranges>
#include <vector>

namespace flux {

struct Nodes {
  int ranks = 1;  // of the world
  int count = 1;  // of nodes

  constexpr Nodes(int ranks = 1, int count = 1) : ranks(ranks), count(count) {}
  constexpr bool operator==(Nodes const&) const = default;

  constexpr int size() const { return ranks / count; }  ///< ranks of a node
  constexpr int node(int rank) const { return rank / size(); }
  constexpr int position(int rank) const { return rank % size(); }
  constexpr int rank(int node, int position) const { return node * size() + position; }
  /// The rank of `rank`'s position on that node.
  constexpr int on_node(int rank, int node) const { return this->rank(node, position(rank)); }
  /// The rank of `rail`'s position on the node of `rank`: where what goes along that rail is handed over.
  constexpr int gateway(int rank, int rail) const { return on_node(rail, node(rank)); }
  /// The i-th rank after `rank` in its node, around it.
  constexpr int neighbour(int rank, int i) const { return this->rank(node(rank), (position(rank) + i) % size()); }
  constexpr bool share_memory(int a, int b) const { return node(a) == node(b); }
  /// The ranks in the order in which `rank`'s partial sums leave: those of the next nodes, own node last, i from 1.
  constexpr int staged_to(int rank, int i) const {
    int const distance = 1 + (i - 1) / size(), step = i % size();
    return this->rank((node(rank) + distance) % count, (position(rank) + step) % size());
  }
  /// The rank of `rank`'s position so many nodes on, or back.
  constexpr int ahead(int rank, int distance) const { return (rank + distance * size()) % ranks; }
  constexpr int behind(int rank, int distance) const { return ahead(rank, count - distance); }
  /// The ranks of `rank`'s position on the other nodes, the next node's first.
  std::vector<int> rail(int rank) const {
    std::vector<int> ranks;
    for (int d = 1; d < count; ++d) ranks.push_back(ahead(rank, d));
    return ranks;
  }
  /// The ranks of `rank`'s node, itself among them.
  constexpr auto neighbours(int rank) const {
    int const first = this->rank(node(rank), 0);
    return std::views::iota(first, first + size());
  }
};

}  // namespace flux
