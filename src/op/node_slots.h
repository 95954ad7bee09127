#pragma once
// Where partial sums meet on a node: a rank has slots for the rows of every owner of its rail, one for each rank of its
// node; and of its own rows one for each other node's sum.
#include "tile/nodes.h"
#include "tile/signal.h"

namespace flux {

struct NodeSlots {
  Nodes nodes;
  int rank = 0;  // whose

  static int count(Nodes const& nodes) { return nodes.ranks + nodes.count - 1; }
  /// The first of those for an owner's rows. Our own come last, and behind them the other nodes' sums in the order of
  /// nodes: all that is added up here for us lies in one piece.
  int first(int owner) const {
    return (nodes.node(owner) - nodes.node(rank) - 1 + nodes.count) % nodes.count * nodes.size();
  }
  int of_node(int node) const { return nodes.ranks + node - (node > nodes.node(rank)); }

  /// By owner, where its rows meet on our node: `slots` at each rank, of `each` elements.
  template <class T>
  Symmetric<T> by_owner(Symmetric<T> const& slots, int64_t each) const {
    Symmetric<T> all;
    for (int owner = 0; owner < nodes.ranks; ++owner)
      all.base[owner] = slots.at(nodes.gateway(rank, owner)) + first(owner) * each;
    return all;
  }
};

}  // namespace flux
