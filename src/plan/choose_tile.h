#pragma once
// Which tile of an engine's table a GEMM takes: the same answer for GPU operators and for the planner.
#include <optional>
#include <string>
#include <vector>

#include "engine/tile_row.h"
#include "flux/problem.h"

namespace flux {

/// Those of the GPU engine's table that serve such a weight on such a chip.
std::vector<TileRow> tile_rows(Chip const& chip, WeightLayout layout, bool gated);

/// Cycles that m x n x k take with a tile.
double cost(TileRow const& tile, int64_t m, int64_t n, int64_t k, WeightLayout layout, Chip const& chip);

/// The cheapest of the tiles of `tile_m` x `tile_n`, which several rows may have; 0 x 0: of all. Nothing where the
/// engine has no such tile. `n` counts gate and up where gated.
std::optional<Choice> choose_tile(int tile_m, int tile_n, TiledRows m, int64_t n, int64_t k, WeightLayout layout,
                                  bool gated, Chip const& chip);
inline Choice choose_tile(TiledRows m, int64_t n, int64_t k, WeightLayout layout, bool gated, Chip const& chip) {
  return *choose_tile(0, 0, m, n, k, layout, gated, chip);
}

/// ` 128x512 256x256 ...`, for who asked for another.
std::string tile_names(Chip const& chip, WeightLayout layout, bool gated);

}  // namespace flux
