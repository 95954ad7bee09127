#pragma once
// Launching the Hopper kernel. Host code, no CUDA header needed.
#include "engine/sm90/config.h"
#include "engine/sm90/stamps.h"
#include "engine/variant.h"
#include "flux/plan.h"
#include "flux/problem.h"
#include "tile/schedule.h"

struct CUstream_st;

namespace flux::sm90 {

/// What one launch multiplies: c = epilogue(a · weight). dtypes bf16 and fp16, accumulated in fp32. Every address and
/// every row pitch is a multiple of 16 bytes. `order` counts tiles of tile_m() x tile_n() of the chosen row (gated:
/// half as many columns); `announcements()` says how often the route's words are counted up for each band.
struct Launch {
  int config = 0;           // row of kTable
  Symmetric<void const> a;  // by rank, rows of k elements; the gate says which and where
  int64_t a_stride = 0;
  Tensor weight;  // [n, k] or [k, n]; gated: n counts gate and up, gate first
  WeightLayout layout = WeightLayout::kOutIn;
  Symmetric<void> c;  // by rank; the route says which and where
  int64_t c_stride = 0;
  Tensor bias;      // [1, n] or none
  Tensor residual;  // shape of c or none; with the route Keep alone
  Activation activation = Activation::kNone;
  bool gated = false;
  Schedule order;
  AnyGate gate;
  AnyRoute route;
  StoreKind store = StoreKind::kTensor;
  int blocks = 0;            // at most; 0: as many as the device holds at once
  Stamps stamps;             // as many rings as blocks, or none
  bool cooperative = false;  // refuse to start unless all blocks are resident together
  bool rows_to_come =
      false;  // begin beside the kernel before it in the stream, which writes A and nothing else of this

  int64_t n() const { return layout == WeightLayout::kOutIn ? weight.rows : weight.columns; }
  int64_t k() const { return layout == WeightLayout::kOutIn ? weight.columns : weight.rows; }
  int64_t columns() const { return gated ? n() / 2 : n(); }
};

/// Columns of tiles that a schedule for this row has.
int tiles_n(Config const& config, int64_t n);
/// Announcer::tiles_n for this row: every block of a cluster counts for itself.
int announcements(Config const& config, int64_t n);

/// Loads the kernel of a row. Loading waits for the GPU to be idle, so it is done before anything waits for a peer.
void prepare(int row, DType dtype, WeightLayout layout);

/// Throws Error: kInvalid for operands that no row can serve, kUnsupported for those this row cannot, kDevice.
void launch(Launch const& launch, CUstream_st* stream);

/// Blocks that this launch will have.
int blocks_of(Launch const& launch);

/// Blocks of this row that the current device holds at once.
int resident_blocks(int config, DType dtype, WeightLayout layout);

}  // namespace flux::sm90
