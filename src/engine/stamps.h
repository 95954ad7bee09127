#pragma once
// When a block's roles did what: for timelines of real kernels. The roles that are one thread take the times, so that
// the maths lose nothing.
#include "tile/loop.h"

namespace flux {

struct Stamp {
  int64_t begin_ns, end_ns;  // of %globaltimer; end 0: none yet
  int64_t row;
  int32_t rows, n;
};

/// Rings of stamps, [block][phase][capacity], zeroed before the launch. kWait: from the gatekeeper's first look to the
/// word; kMaths begins with the loader's first request for the tile; kStore: from the first finished chunk to the last
/// one that the copy engine has read.
struct Stamps {
  static constexpr int kPhases = 3;
  Stamp* rings = nullptr;  // none: nothing is stamped
  int capacity = 0;        // stamps of a ring; later ones overwrite the first

  FLUX_HD constexpr explicit operator bool() const { return rings != nullptr; }
  FLUX_HD constexpr int64_t size(int blocks) const { return int64_t{1} * blocks * kPhases * capacity; }
  FLUX_HD Stamp const* ring(int block, Phase phase) const {
    return rings + (int64_t{1} * block * kPhases + static_cast<int>(phase)) * capacity;
  }
  /// The `count`-th stamp of this block in that phase, by the one thread that counts it.
  FLUX_HD void add(int block, Phase phase, uint32_t count, Tile tile, int64_t begin_ns, int64_t end_ns) const {
    const_cast<Stamp*>(ring(block, phase))[count % static_cast<uint32_t>(capacity)] = {begin_ns, end_ns, tile.row,
                                                                                       tile.rows, tile.n};
  }
};

}  // namespace flux
