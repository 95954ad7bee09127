#include "op/gpu/over_nodes.h"

#include <algorithm>
#include <iterator>

namespace flux {

void gather_over_nodes(GpuChannel& channel, Gather const& g, Watch const& watch, int blocks, DType dtype) {
  Nodes const& nodes = channel.team().nodes();
  auto pieces = [](std::vector<Transfer> const& list) {
    GpuRail::Pieces all;
    for (Transfer const& t : list) all.push_back({t});
    return all;
  };
  std::vector<Transfer> in_node = copies_in_node(g, nodes);
  std::vector<Transfer> const on = handed_on(g, nodes);
  CopyStream& copies = channel.copies();
  if (blocks == 0) copies.enqueue(in_node);  // first: nothing else brings the node our rows
  channel.rail()->exchange([&](int peer) { return pieces(sent_along_rail(g, peer)); },
                           [&](int peer) { return pieces(received_along_rail(g, peer)); }, watch);
  if (blocks > 0) {
    std::ranges::copy(on, std::back_inserter(in_node));
    return channel.copy_by_blocks(in_node, {}, blocks, dtype, watch);
  }
  copies.wait_by_kernels(watch);  // for the rail's words: by then it has been enqueued
  copies.enqueue(on);
  copies.wait_by_kernels({});
}

}  // namespace flux
