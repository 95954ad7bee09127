#include "op/gpu/packets.h"

#include <algorithm>

#include "op/gpu/partial_sums.h"

namespace flux {

namespace {

/// Rows that only travel, elements of one byte two by two.
Tensor in_16_bits(Tensor t) {
  if (size_of(t.dtype) == 1) t.dtype = result_of(t.dtype), t.columns /= 2, t.stride /= 2;
  return t;
}

}  // namespace

PacketShots GpuPackets::shots(Team& team, Use const& use, Plan const& plan, int64_t m) {
  Gpu const& gpu = *team.gpu();
  if (m == 0 || use.columns == 0 || gpu.through_host() || gpu.spans_nodes())
    return PacketShots::kNone;  // a poll would cross the bus, or the network
  Reach const reach = gpu.across_pcie()                ? Reach::kPcie
                      : gpu.shared() || gpu.mirrored() ? Reach::kMemory
                                                       : Reach::kNvlink;
  PacketShots const shots = packet_shots(plan, use.op, m, use.row_bytes(), team.size(), reach);
  // A mirror gets what it sends; without rows of its own that is nothing.
  bool const none_sent = gpu.mirrored() && Shards{m, team.size(), 1}.size(team.rank()) == 0;
  if (!none_sent || shots == PacketShots::kNone) return shots;
  return use.op == Op::kGemmAllReduce ? PacketShots::kOne : PacketShots::kNone;
}

Buffers::Extra GpuPackets::need(Team& team, Use const& use, Plan const& plan) {
  Buffers::Extra most;
  for (int64_t m = 1; m <= use.max_m; ++m) {
    PacketShots const shots = GpuPackets::shots(team, use, plan, m);
    if (shots == PacketShots::kNone &&
        packet_shots(plan, use.op, m, use.row_bytes(), team.size(), Reach::kNvlink) == PacketShots::kNone)
      break;  // nor any higher one
    int64_t const half =
        shots == PacketShots::kNone ? 0 : packet_layout(use.op, m, use.row_bytes(), team.size(), shots).size();
    most.packet_bytes = std::max(most.packet_bytes, 2 * half * int64_t{sizeof(Packet)});
    if (half > 0) most.scratch_bytes = m * use.row_bytes();
  }
  return most;
}

GpuPackets::GpuPackets(Team& team, Use const& use, Plan const& plan, Buffers const& buffers)
    : team_(team), use_(use), plan_(plan), buffers_(buffers) {
  prepare_packets();
}

Tiles GpuPackets::tiles(int64_t m, int64_t n, int64_t k, WeightLayout layout, bool gated, DType operands) const {
  Gpu const& gpu = *team_.gpu();
  Chip chip = gemm_chip(plan_, gpu, 1);
  if (plan_.spare == 0) chip.processors = gpu.most_processors();
  return choose_tiles(plan_, {m}, n, k, layout, gated, operands, chip);
}

GemmLaunch GpuPackets::gemm(Tiles const& tiles, Tensor const& rows, Linear const& linear) const {
  Gpu const& gpu = *team_.gpu();
  int const rank = team_.rank();
  GemmLaunch l;
  l.tile = tiles.tile;
  // No copies run beside it. What waits in kernels of other ranks on this GPU has processors of its own.
  l.processors = gpu.mirrored() && plan_.spare == 0 ? 0 : gemm_processors(plan_, gpu), l.apart = !gpu.whole();
  l.a.base[rank] = rows.data, l.a_stride = packed(rows).stride;
  l.weight = linear.weight, l.layout = linear.layout, l.bias = linear.bias;
  l.scales = linear.scales;
  l.activation = linear.activation, l.gated = linear.gated;
  l.c.base[rank] = linear.out.data, l.c_stride = packed(linear.out).stride, l.store = plan_.store;
  l.order = arrange(Order::kNaive, Tiling::kAcross, {rows.rows, 1, 1}, tiles.tile.tile_m, tiles.tile.tiles_n(l.n()),
                    tiles.band, 0);
  l.gate = Open{rank, l.k()}, l.route = Keep{rank, rows.rows};
  return l;
}

void GpuPackets::exchange(Call const& call, int64_t m, Tensor const& own_rows, Tensor const& out_rows,
                          SumEpilogue const& epilogue, Stream stream) const {
  Tensor const own = in_16_bits(own_rows), out = in_16_bits(out_rows);
  Gpu const& gpu = *team_.gpu();
  PacketExchange e{GpuPartialSums::summed(gpu, out, epilogue)};
  e.layout = packet_layout(use_.op, m, use_.row_bytes(), team_.size(), shots(m));
  e.packets = buffers_.packets(), e.half = buffers_.packets_of_half(), e.calls = buffers_.packet_calls();
  e.digest = call.digest, e.watch = call.watch;
  e.own = own.data, e.own_stride = packed(own).stride, e.mirrored = gpu.mirrored();
  // They wait for packets, so all of them have to fit, and where others share the GPU leave room as GEMMs do.
  int const blocks = gpu.shared() ? gemm_processors(plan_, gpu) : 2 * gpu.most_processors();
  exchange_packets(e, blocks, stream);
}

}  // namespace flux
