#pragma once
// Calls of few rows on GPUs: a GEMM and one kernel that exchanges rows or partial sums, before it (AG+GEMM) or behind
// it (GEMM+RS, GEMM+AR). Packets carry their own words (src/tile/packet.h), so nothing begins or ends such a call.
#include "flux/op.h"
#include "kernel/gemm.h"
#include "kernel/packets.h"
#include "op/channel.h"
#include "op/gpu/tiles.h"
#include "plan/pieces.h"

namespace flux {

class GpuPackets {
 public:
  /// Of an operator: for calls of up to `max_m` rows, of which those travel that have `columns` columns.
  struct Use {
    Op op;
    int64_t max_m, columns;
    DType dtype;  // of what travels
    int64_t row_bytes() const { return columns * size_of(dtype); }
  };
  /// What its calls by packets take of the operator's Buffers.
  static Buffers::Extra need(Team& team, Use const& use, Plan const& plan);
  GpuPackets(Team& team, Use const& use, Plan const& plan, Buffers const& buffers);

  /// Whether, and how, a call of `m` rows goes by packets; the same on every rank.
  PacketShots shots(int64_t m) const { return shots(team_, use_, plan_, m); }
  static PacketShots shots(Team& team, Use const& use, Plan const& plan, int64_t m);

  /// A tile for a GEMM of such a call. Throws Error{kUnsupported} for one that is not in the table.
  Tiles tiles(int64_t m, int64_t n, int64_t k, WeightLayout layout, bool gated, DType operands) const;
  /// `linear` of `rows`.
  GemmLaunch gemm(Tiles const& tiles, Tensor const& rows, Linear const& linear) const;

  /// [m, columns]: where partial sums are stored, or rows gathered.
  Tensor rows(int64_t m) const { return matrix(buffers_.scratch().get(), use_.dtype, m, use_.columns); }
  /// Enqueues the exchange of a call of `m` rows: of rows(m), or of `own` rows into `out`.
  void exchange(Call const& call, int64_t m, Tensor const& own, Tensor const& out, SumEpilogue const& epilogue,
                Stream stream) const;

 private:
  Team& team_;
  Use use_;
  Plan plan_;
  Buffers const& buffers_;
};

}  // namespace flux
