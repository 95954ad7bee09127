#pragma once
// Which tiles a GPU multiplies in: a row of the engine's table, and the raster. The same on every rank.
#include <algorithm>

#include "engine/sm90/config.h"
#include "flux/plan.h"
#include "flux/tensor.h"
#include "world/gpu.h"

namespace flux {

struct Tiles {
  int row = 0, band = 1;
  sm90::Config const& config() const { return sm90::kTable[row]; }
  /// The raster where rows come or go in communication tiles: a band over two would wait for the later one.
  int band_within(int64_t comm_rows) const {
    return comm_rows == 0 ? band : static_cast<int>(std::clamp<int64_t>(comm_rows / config().tile_m(), 1, band));
  }
  /// Whether m x n are few tiles, all multiplied at once.
  bool one_wave(int64_t m, int64_t n, Gpu const& gpu) const;
};

/// The plan's tile, or the cheapest for m x n x k on this GPU. `n` counts gate and up where gated. Throws
/// Error{kUnsupported} for a tile that is not in the table.
Tiles choose_tiles(Plan const& plan, int64_t m, int64_t n, int64_t k, WeightLayout layout, bool gated, Gpu const& gpu);

/// Rows of a communication tile, of a shard of `shard_rows` rows of `row_bytes` bytes, each multiplied to n columns; 0:
/// the whole shard. Where the plan leaves it open and the link is PCIe, a wave of tiles: what is multiplied behind the
/// last arrival, or before the first departure, is not hidden. But no small copies: each costs the engine some 8 us.
int64_t choose_comm_rows(Plan const& plan, Tiles const& tiles, int64_t n, int64_t shard_rows, int64_t row_bytes,
                         Gpu const& gpu);

/// The most blocks of a GEMM, 0: as many as the GPU holds. A shared GPU, and one where operators run side by side, has
/// room for others: what begins a call must never wait for a GEMM that waits.
int gemm_blocks(Plan const& plan, Gpu const& gpu);

/// Loads the kernels that this plan may choose.
void prepare_tiles(Plan const& plan, DType dtype);

/// One row has no distance to the next, whatever its stride says.
inline Tensor packed(Tensor t) {
  if (t.rows <= 1) t.stride = t.columns;
  return t;
}

/// Throws Error{kUnsupported} for an operand that TMA cannot address. On every rank, before a call begins.
void require_on_gpu(std::string_view what, Tensor const& t);

}  // namespace flux
