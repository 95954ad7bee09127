#pragma once
// In which pieces rows and partial sums travel, and what carries them: the rules of the GPU operators, which the
// simulator goes by too.
#include "engine/tile_row.h"
#include "flux/plan.h"
#include "flux/problem.h"
#include "tile/packet.h"

namespace flux {

enum class Carried { kRows, kPartials };
/// Rows of m that come or go together, as the plan says; where it leaves that open, a shard, which PCIe carries in
/// pieces of some 12 MiB, partial sums of some 6: what is multiplied behind the last arrival, or before the first
/// departure and added up behind the last, is not hidden, but each copy takes the engine some 4 us more.
int64_t rows_at_once(Plan const& plan, Carried what, int64_t m, int ranks, int64_t row_bytes, bool across_pcie);

/// For which rows of m the tiles are chosen: all; or `in_pieces`, where PCIe lets the GEMM go on no faster than
/// `at_once` rows come, or go, at a time, for those; where they are few, for all, and for those behind the last arrival
/// or before the first departure.
TiledRows rows_to_tile(int64_t m, int64_t at_once, bool in_pieces);

/// Tile rows of partial sums that are multiplied side by side however low shards are: alone, each would read all
/// weights.
int tile_rows_together(int tile_m);

/// What carries pieces of `piece_bytes`: 0, the copy engine, or so many blocks of the GPU, which alone relay `around` a
/// ring (a plan that has the copy engine do that is for the caller to refuse).
int blocks_to_copy(Plan const& plan, Carried what, int64_t piece_bytes, bool around);

/// Multiprocessors that a GEMM leaves for what carries rows between nodes: the communicator's blocks, and those that
/// add up what a node sends, or wait.
inline constexpr int kRailBlocks = 8, kCommunicatorBlocks = 4;

/// Slices of k where one tile needs rows of all ranks, and blocks carry them: it multiplies what has come. Not of
/// pieces so small that a slice is gone before the next one can be waited for.
inline constexpr int kSlicesOfOneTile = 4;
int slices_of_k(Plan const& plan, int copying, int64_t piece_bytes, int64_t m, int tile_m);

/// Whether GEMM+RS gains by sending partial sums of `rows_at_once` at a time: copies hide `hidden_cycles` of the GEMM,
/// all but the first piece, and cost more than one after the other.
bool pieces_pay(double hidden_cycles, int64_t m, int64_t rows_at_once, int ranks, int copying);

/// What lies between ranks.
enum class Reach { kPcie, kNvlink, kMemory };
/// Whether the rows, or partial sums, of a call of `m` rows go by packets (src/tile/packet.h), and GEMM+AR in one shot
/// or two.
enum class PacketShots { kNone, kOne, kTwo };
PacketShots packet_shots(Plan const& plan, Op op, int64_t m, int64_t row_bytes, int ranks, Reach reach);
/// Where they lie; `shots` is not kNone.
PacketLayout packet_layout(Op op, int64_t m, int64_t row_bytes, int ranks, PacketShots shots);

}  // namespace flux
