#pragma once
// Which ranks share memory.
#include <string>
#include <vector>

#include "flux/world.h"
#include "tile/nodes.h"

namespace flux {

/// The nodes of ranks on these hosts, in rank order. Throws Error{kInvalid} where hosts have different numbers of
/// ranks, or their ranks do not follow each other.
Nodes nodes_of(std::vector<std::string> const& hosts);

/// Collective. As many as `options.nodes` says, else $FLUX_NODES; else ranks that can map each other's memory make a
/// node.
Nodes find_nodes(Bootstrap& bootstrap, WorldOptions const& options);

}  // namespace flux
