#pragma once
// The tiles that a machine's engine has, and what a GEMM in them costs.
#include <optional>
#include <vector>

#include "engine/sm90/choose.h"
#include "plan/machine.h"
#include "plan/problem.h"

namespace flux {

struct TileShape {
  int tile_m = 0, tile_n = 0;            ///< of a tile of the schedule
  int cluster = 1;                       ///< blocks that work on one
  sm90::Config const* config = nullptr;  ///< the row of the Hopper engine's table, if it is one
  bool operator==(TileShape const&) const = default;
};

std::vector<TileShape> tile_shapes(Machine const& machine, WeightLayout layout, bool gated);

/// Workers that take tiles at the same time.
int workers(TileShape const& shape, Machine const& machine);
/// Cycles that m x n x k takes beside Machine::gemm_us.
double cycles(TileShape const& shape, int64_t m, int64_t n, int64_t k, WeightLayout layout, Machine const& machine);
/// The same of one tile, all workers busy.
double tile_cycles(TileShape const& shape, int64_t m, int64_t n, int64_t k, WeightLayout layout,
                   Machine const& machine);
/// The part of `bytes` that a second pass over them reads from memory again: the cache has two halves, and what both
/// need, as weights, stands in both.
double read_again(double bytes, Machine const& machine);
/// The cheapest.
TileShape best_shape(int64_t m, int64_t n, int64_t k, WeightLayout layout, bool gated, Machine const& machine);

/// What the engine takes where a plan leaves it the choice.
TileShape usual_shape(sm90::TiledRows m, int64_t n, int64_t k, WeightLayout layout, bool gated, Machine const& machine);

/// The same of a tile that a plan names; nothing where the engine has none like it.
std::optional<TileShape> named_shape(int tile_m, int tile_n, sm90::TiledRows m, int64_t n, int64_t k,
                                     WeightLayout layout, bool gated, Machine const& machine);

/// The part of the time that a GEMM of `gemm_us` takes, one after another with `beside_us` of something else and the
/// gap between two calls.
double busy(double gemm_us, double beside_us);
/// MHz while GEMMs take `busy` of the time, 0 to 1: the power that a GPU may draw is enough for 60 %.
double clock_mhz(Machine const& machine, double busy);

}  // namespace flux
