#include "plan/pieces.h"

#include <algorithm>

namespace flux {

int64_t rows_at_once(Plan const& plan, Carried what, int64_t m, int ranks, int64_t row_bytes, bool across_pcie) {
  int64_t const piece_bytes = int64_t{what == Carried::kRows ? 12 : 6} << 20;
  int64_t const shard = std::max<int64_t>(Shards{m, ranks, 1}.largest(), 1);
  if (plan.comm_rows > 0) return std::min(plan.comm_rows, shard);
  if (!across_pcie) return shard;
  int64_t const pieces = std::max<int64_t>((shard * row_bytes + piece_bytes / 2) / piece_bytes, 1);
  return (shard + pieces - 1) / pieces;
}

// Fewer rows than these do not go alone: they would read all weights.
constexpr int kRowsTogether = 128;

TiledRows rows_to_tile(int64_t m, int64_t at_once, bool in_pieces) {
  if (!in_pieces) return {m};
  if (at_once < kRowsTogether) return {m, std::min<int64_t>(m, kRowsTogether)};
  return {at_once};
}

int tile_rows_together(int tile_m) { return std::max(kRowsTogether / tile_m, 1); }

int blocks_to_copy(Plan const& plan, Carried what, int64_t piece_bytes, bool around) {
  // Across PCIe 8 blocks carry pieces of 0.2 MiB in half the copy engine's time, pieces of 1 MiB no faster. Of 0.5 MiB
  // GEMM+RS gains by blocks, AG+GEMM by the engine (docs/results.md). On NVLink this is an estimate: 7 us a copy.
  int64_t const small_piece = int64_t{what == Carried::kRows ? 384 : 512} << 10;
  constexpr int kBlocks = 8;
  if (plan.copy_blocks != kChosenCopies) return plan.copy_blocks;
  return around || piece_bytes <= small_piece ? kBlocks : 0;
}

int slices_of_k(Plan const& plan, int copying, int64_t piece_bytes, int64_t m, int tile_m) {
  constexpr int64_t kLeastSlice = 16 << 10;
  bool const worth = copying > 0 && m <= tile_m && piece_bytes >= kSlicesOfOneTile * kLeastSlice;
  return worth && plan.k_slices == 1 ? kSlicesOfOneTile : plan.k_slices;
}

PacketShots packet_shots(Plan const& plan, Op op, int64_t m, int64_t row_bytes, int ranks, Reach reach) {
  bool const sums = op != Op::kAllGatherGemm;
  bool const open = plan.comm_rows == 0 && plan.copy_blocks == kChosenCopies && plan.k_slices == 1 &&
                    plan.transport == Transport::kPush && plan.path == Path::kDirect;
  bool const asked = sums ? plan.route == RouteKind::kAuto || plan.route == RouteKind::kPackets : true;
  // Packets carry a third more bytes than rows, hide little of them behind the GEMM, and cross PCIe at a third of its
  // rate (docs/engines.md, the small end).
  int64_t most = int64_t{8} << 20;
  if (reach == Reach::kPcie && op != Op::kGemmAllReduce) most = int64_t{sums ? 1024 : 512} << 10;
  if (!plan.fused || !asked || !open || m * row_bytes > most) return PacketShots::kNone;
  if (op != Op::kGemmAllReduce) return PacketShots::kOne;
  if (plan.shots == Shots::kTwoShot) return PacketShots::kTwo;
  // As many packets as are cleared before tags come again, and to spare (src/tile/packet.h).
  if (plan.shots == Shots::kOneShot) return m * row_bytes * ranks <= 8 * most ? PacketShots::kOne : PacketShots::kNone;
  // One shot sends more; the second takes one more trip, in which so many bytes go.
  int64_t const trip = int64_t{reach == Reach::kPcie ? 128 : reach == Reach::kNvlink ? 1024 : 4096} << 10;
  int64_t const more_rows = m - 2 * Shards{m, ranks, 1}.largest();
  return more_rows * (ranks - 1) * packets_of(row_bytes) * int64_t{sizeof(Packet)} > trip ? PacketShots::kTwo
                                                                                          : PacketShots::kOne;
}

PacketLayout packet_layout(Op op, int64_t m, int64_t row_bytes, int ranks, PacketShots shots) {
  bool const gathers = op == Op::kAllGatherGemm, one_shot = op == Op::kGemmAllReduce && shots == PacketShots::kOne;
  PacketLayout layout{{m, one_shot ? 1 : ranks, 1}, ranks, packets_of(row_bytes)};
  layout.partials = !gathers, layout.rows = op != Op::kGemmReduceScatter && !one_shot;
  return layout;
}

bool pieces_pay(double hidden_cycles, int64_t m, int64_t rows_at_once, int ranks, int copying) {
  // A copy takes the engine some 4 us more than its bytes, the rest of the call some 10 more than one after the other
  // (docs/results.md), at some 1.7 GHz.
  int64_t const copies = m / std::max<int64_t>(rows_at_once, 1) * (ranks - 1) / ranks;
  return hidden_cycles > 1700. * (10 + (copying == 0 ? 4 * static_cast<double>(copies) : 0));
}

}  // namespace flux
