#pragma once
// Which tile of an engine's table a GEMM takes: the same answer for GPU operators and for the planner.
#include <optional>
#include <string>
#include <vector>

#include "engine/tile_row.h"
#include "flux/problem.h"

namespace flux {

/// What multiplies operands of `dtype`: those of one byte go by mma.sync on every chip, as 16 bits of k do of which
/// each holds two elements. Throws Error{kUnsupported} for what the chip has no instruction for.
Chip chip_for(Chip chip, DType dtype);
/// k as costs count it, in operands of 16 bits.
constexpr int64_t depth_of(int64_t k, DType dtype) { return size_of(dtype) == 1 ? (k + 1) / 2 : k; }

/// Those of the GPU engine's table that serve such a weight on such a chip.
std::vector<TileRow> tile_rows(Chip const& chip, WeightLayout layout, bool gated);

/// Cycles that m x n x k, operands of 16 bits, take with a tile.
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
