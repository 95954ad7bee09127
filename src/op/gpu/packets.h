#pragma once
// GEMM+AR of few rows on GPUs: a GEMM whose results stay, and one kernel that exchanges and adds them up. Packets carry
// their own words (src/tile/packet.h), so nothing begins or ends such a call.
#include "flux/op.h"
#include "kernel/packet_sum.h"
#include "op/gpu/recording.h"
#include "op/gpu/tiles.h"
#include "plan/pieces.h"

namespace flux {

class GpuPackets {
 public:
  /// Collective. For calls of up to `max_m` rows, as far as they go by packets.
  GpuPackets(Team& team, GemmAllReduce::Shape const& shape, Plan const& plan);
  /// What it allocates.
  static int64_t bytes(Team& team, GemmAllReduce::Shape const& shape, Plan const& plan);

  /// How the ranks sum a call of `m` rows; the same on every rank.
  PacketShots shots(int64_t m) const { return shots(team_, n_ * size_of(dtype_), plan_, m); }
  /// Throws Error{kUnsupported} for a tile that is not in the table: before a call begins.
  Tiles tiles(int64_t m, WeightLayout layout) const;

  /// Enqueues all of a call. `recording`: keeps its times, or null. `tiles`: what tiles() gave for m.
  void run(Call const& call, Tiles const& tiles, int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout,
           Tensor const& out, SumEpilogue const& epilogue, GpuRecording* recording, Stream stream);
  sm90::Launch gemm(Tiles const& tiles, int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout) const;
  /// The second half alone: partial sums lie in partials().
  void sum(Call const& call, Tensor const& out, SumEpilogue const& epilogue, Stream stream);
  std::byte* partials() const { return partials_.get(); }  ///< [rows, n]

 private:
  static PacketShots shots(Team& team, int64_t row_bytes, Plan const& plan, int64_t m);
  static PacketLayout layout(int64_t m, int ranks, int64_t row_bytes, PacketShots shots);
  struct Most {
    int64_t rows = 0, packets = 0;  // of a call, of a half
  };
  static Most most(Team& team, GemmAllReduce::Shape const& shape, Plan const& plan);

  Team& team_;
  int64_t n_, k_;
  DType dtype_;
  Plan plan_;
  Most most_;
  std::shared_ptr<SymmetricMemory> packets_;
  std::shared_ptr<std::byte> partials_, calls_;
};

}  // namespace flux
