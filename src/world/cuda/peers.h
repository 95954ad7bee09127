#pragma once
// What the environment's FLUX_PEERS asks for: how ranks that are processes reach each other.
#include "flux/world.h"

namespace flux {

enum class Peers {
  kAuto,  ///< the first way that serves: GPU memory, host memory, NCCL
  kHost,  ///< pinned host memory
  kNccl,
};

inline constexpr char const* kPeersVariable = "FLUX_PEERS";

/// Collective: what all ranks ask for. Throws the same Error{kInvalid} on every rank where they differ, or one of them
/// gives another word.
Peers agreed_peers(Bootstrap& bootstrap, double limit_seconds);

}  // namespace flux
