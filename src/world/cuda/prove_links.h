#pragma once
#include <algorithm>

#include "world/gpu.h"

namespace flux {

/// Collective: every rank, on GPU `device` here, writes into the memory of every other of its node, and both look at
/// what arrived. The list, of all nodes, is the same on every rank.
std::vector<LinkProof> prove_links(Bootstrap& bootstrap, Nodes const& nodes, Gpu& gpu, int device,
                                   double limit_seconds);

/// What does not work of them, or nothing.
std::string broken_link(std::vector<LinkProof> const& links);

/// Whether one of them crosses PCIe: the same on every rank, as plans are chosen by it.
inline bool cross_pcie(std::vector<LinkProof> const& links) {
  return std::ranges::any_of(links, [](LinkProof const& link) { return link.way == "PCIe"; });
}

}  // namespace flux
