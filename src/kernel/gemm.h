#pragma once
// Launching a GEMM on a GPU, by whichever engine its tile is of. Host code, no CUDA header needed.
#include "engine/stamps.h"
#include "engine/tile_row.h"
#include "engine/variant.h"
#include "flux/plan.h"
#include "flux/problem.h"
#include "tile/schedule.h"

struct CUstream_st;

namespace flux {

/// What one launch multiplies: c = epilogue(a · weight). dtypes bf16 and fp16, accumulated in fp32; by the sm80 engine
/// int8, in int32, and fp8, weights [n, k], both into bf16. Every address and every row pitch is a multiple of 16
/// bytes. `order` counts tiles of tile_m x tile_n (gated: half as many columns); the tile's announcements() says how
/// often the route's words are counted up for each band.
struct GemmLaunch {
  TileRow tile;
  Symmetric<void const> a;  // by rank, rows of k elements; the gate says which and where
  int64_t a_stride = 0;
  Tensor weight;  // [n, k] or [k, n]; gated: n counts gate and up, gate first
  WeightLayout layout = WeightLayout::kOutIn;
  Symmetric<void> c;  // by rank; the route says which and where
  int64_t c_stride = 0;
  Tensor bias;  // [1, n] or none
  Activation activation = Activation::kNone;
  bool gated = false;
  Scales scales;  // of one byte: of the schedule's rows, and of the n columns
  Schedule order;
  AnyGate gate;
  AnyRoute route;
  StoreKind store = StoreKind::kTensor;
  int processors = 0;        // that it may fill; 0: all
  bool apart = false;        // a block for each of those: where two would fit they need not go to the same one
  Stamps stamps;             // as many rings as blocks, or none
  bool cooperative = false;  // refuse to start unless all blocks are resident together
  bool rows_to_come =
      false;  // begin beside the kernel before it in the stream, which writes A and nothing else of this

  int64_t n() const { return layout == WeightLayout::kOutIn ? weight.rows : weight.columns; }
  int64_t k() const { return layout == WeightLayout::kOutIn ? weight.columns : weight.rows; }
  int64_t columns() const { return gated ? n() / 2 : n(); }
};

/// Loads the kernel of a tile. Loading waits for the GPU to be idle, so it is done before anything waits for a peer.
void prepare_gemm(TileRow const& tile, DType dtype, WeightLayout layout);

/// Throws Error: kInvalid for operands that no tile can serve, kUnsupported for those this one cannot, kDevice.
void enqueue_gemm(GemmLaunch const& launch, CUstream_st* stream);

/// Blocks that this launch will have.
int blocks_of(GemmLaunch const& launch);

/// Blocks of this tile that the current device holds at once.
int resident_blocks(TileRow const& tile, DType dtype, WeightLayout layout);

}  // namespace flux
