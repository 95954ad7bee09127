#pragma once
// Which tiles a GPU multiplies in: a row of the engine's table, and the raster. The same on every rank.
#include <algorithm>

#include "flux/plan.h"
#include "flux/problem.h"
#include "flux/tensor.h"
#include "plan/choose_tile.h"
#include "plan/pieces.h"
#include "world/gpu.h"

namespace flux {

struct Tiles {
  TileRow tile;
  int band = 1;
  double cycles = 0;  // expected of the GEMM; 0 where the plan names the tile
  bool fused = true;  // false: copies would cost more than they hide
  /// The raster where rows come or go in communication tiles: a band over two would wait for the later one.
  int band_within(int64_t comm_rows) const {
    return static_cast<int>(std::clamp<int64_t>(comm_rows / tile.tile_m, 1, band));
  }
  /// Whole tile rows.
  int64_t rounded(int64_t rows) const { return (rows + tile.tile_m - 1) / tile.tile_m * tile.tile_m; }
};

/// The plan's tile, or the cheapest for m x n x k of `dtype` on so many processors. `n` counts gate and up where gated.
/// Throws Error{kUnsupported} for a tile that is not in the table.
Tiles choose_tiles(Plan const& plan, TiledRows m, int64_t n, int64_t k, WeightLayout layout, bool gated, DType dtype,
                   Chip const& chip);

/// As in plan/pieces.h, but on a shared GPU, which has no processors to spare. Throws Error{kInvalid} where the plan
/// has the copy engine relay around a ring.
int blocks_to_copy(Plan const& plan, Carried what, int64_t piece_bytes, bool around, Gpu const& gpu);

/// Blocks that run beside a GEMM: those that copy, or through host memory the waits of the copies; and those of rails.
int blocks_beside(int copying, Gpu const& gpu);

/// The most processors of a GEMM beside `copying` blocks that copy, 0: all. A shared GPU, and one
/// where operators run side by side, has room for others: what begins a call must never wait for a GEMM that waits.
int gemm_processors(Plan const& plan, Gpu const& gpu, int copying = 0);
/// The GPU with the processors that those have.
inline Chip gemm_chip(Plan const& plan, Gpu const& gpu, int copying) {
  Chip chip = gpu.chip();
  if (int const free = copying > 0 ? gemm_processors(plan, gpu, copying) : 0; free > 0) chip.processors = free;
  return chip;
}

/// Loads the kernels that this plan may choose.
void prepare_tiles(Plan const& plan, DType dtype, Gpu const& gpu);

/// One row has no distance to the next, whatever its stride says.
inline Tensor packed(Tensor t) {
  if (t.rows <= 1) t.stride = t.columns;
  return t;
}

/// Throws Error{kUnsupported} for an operand that the engines cannot address, kInvalid for a layer that the GPU does
/// not take. On every rank, before a call begins.
void require_on_gpu(std::string_view what, Tensor const& t);
void require_on_gpu(Linear const& layer);
void require_on_gpu(Scales const& scales);

}  // namespace flux
