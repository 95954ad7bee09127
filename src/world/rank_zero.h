#pragma once
// What rank 0 says for all ranks when a world is made, so that each plans alike: where it computes, and its file of
// tuned plans.
#include <string>

#include "engine/tile_row.h"
#include "flux/world.h"

namespace flux {

class Gpu;

struct FromRankZero {
  EngineKind engine = EngineKind::kHost;
  bool across_pcie = false, through_host = false;
  int processors = 1;       ///< multiprocessors of its GPU, or 1
  double tune_seconds = 0;  ///< WorldOptions::tune_seconds
  std::string plans;        ///< the text of the file; empty: there is none, or it cannot be read

  bool operator==(FromRankZero const&) const = default;
};

/// The file that `options` mean: named there, by $FLUX_PLAN_CACHE, or the usual one; empty: none.
std::string plan_file(WorldOptions const& options);

/// What rank 0 has to say, and how it travels. A file that cannot be read costs a sentence on stderr.
FromRankZero of_this_rank(WorldOptions const& options, Gpu const* gpu);
std::string to_bytes(FromRankZero const& said);
FromRankZero from_rank_zero(std::string const& bytes);

}  // namespace flux
