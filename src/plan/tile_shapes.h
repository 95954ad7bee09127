#pragma once
// The tiles that a machine's engine has, and what a GEMM in them costs.
#include <optional>
#include <vector>

#include "plan/choose_tile.h"
#include "plan/machine.h"
#include "plan/problem.h"

namespace flux {

/// As operators choose by it.
Chip chip_of(Machine const& machine);

/// The machine as operands of `dtype` find it, see chip_for().
Machine machine_for(Machine const& machine, DType dtype);
/// k of the per-rank GEMM as costs count it there: the host engine gains nothing by operands of one byte.
inline int64_t depth(Problem const& problem, Machine const& machine) {
  return machine.engine == EngineKind::kHost ? problem.local_k() : depth_of(problem.local_k(), problem.dtype);
}

std::vector<TileRow> tile_shapes(Machine const& machine, WeightLayout layout, bool gated);

/// Workers that take tiles at the same time.
int workers(TileRow const& shape, Machine const& machine);
/// Cycles that m x n x k takes beside Machine::gemm_us.
double cycles(TileRow const& shape, int64_t m, int64_t n, int64_t k, WeightLayout layout, Machine const& machine);
/// The same of one tile, all workers busy.
double tile_cycles(TileRow const& shape, int64_t m, int64_t n, int64_t k, WeightLayout layout, Machine const& machine);
/// The part of `bytes` that a second pass over them reads from memory again: the cache has two halves, and what both
/// need, as weights, stands in both.
double read_again(double bytes, Machine const& machine);
/// The cheapest.
TileRow best_shape(int64_t m, int64_t n, int64_t k, WeightLayout layout, bool gated, Machine const& machine);

/// What the engine takes where a plan leaves it the choice.
TileRow usual_shape(TiledRows m, int64_t n, int64_t k, WeightLayout layout, bool gated, Machine const& machine);

/// The same of a tile that a plan names; nothing where the engine has none like it.
std::optional<TileRow> named_shape(int tile_m, int tile_n, TiledRows m, int64_t n, int64_t k, WeightLayout layout,
                                   bool gated, Machine const& machine);

/// The part of the time that a GEMM of `gemm_us` takes, one after another with `beside_us` of something else and the
/// gap between two calls.
double busy(double gemm_us, double beside_us);
/// MHz while GEMMs take `busy` of the time, 0 to 1: the power that a GPU may draw is enough for 60 %.
double clock_mhz(Machine const& machine, double busy);

}  // namespace flux
