#include "op/gpu/packets.h"

#include <algorithm>

#include "op/gpu/partial_sums.h"

namespace flux {

PacketShots GpuPackets::shots(Team& team, int64_t row_bytes, Plan const& plan, int64_t m) {
  Gpu const& gpu = *team.gpu();
  int const ranks = team.size();
  if (m == 0 || row_bytes == 0) return PacketShots::kNone;
  PacketShots const shots = packet_shots(plan, m, row_bytes, ranks, gpu.across_pcie());
  // A mirror gets the sums that it sends; without rows of its own it sends none.
  bool const none_sent = gpu.mirrored() && Shards{m, ranks, 1}.size(team.rank()) == 0;
  return none_sent && shots == PacketShots::kTwo ? PacketShots::kOne : shots;
}

PacketLayout GpuPackets::layout(int64_t m, int ranks, int64_t row_bytes, PacketShots shots) {
  return {{m, shots == PacketShots::kTwo ? ranks : 1, 1}, ranks, packets_of(row_bytes)};
}

GpuPackets::Most GpuPackets::most(Team& team, GemmAllReduce::Shape const& s, Plan const& plan) {
  int64_t const row_bytes = s.n * size_of(s.dtype);
  Most most;
  for (int64_t m = 1; m <= s.max_m; ++m) {
    PacketShots const shots = GpuPackets::shots(team, row_bytes, plan, m);
    if (shots == PacketShots::kNone) break;  // nor any higher one
    most = {m, std::max(most.packets, layout(m, team.size(), row_bytes, shots).size())};
  }
  return most;
}

int64_t GpuPackets::bytes(Team& team, GemmAllReduce::Shape const& s, Plan const& plan) {
  Most const most = GpuPackets::most(team, s, plan);
  return 2 * most.packets * int64_t{sizeof(Packet)} + most.rows * s.n * size_of(s.dtype);
}

GpuPackets::GpuPackets(Team& team, GemmAllReduce::Shape const& s, Plan const& plan)
    : team_(team), n_(s.n), k_(s.k), dtype_(s.dtype), plan_(plan), most_(most(team, s, plan)) {
  if (most_.rows == 0) return;
  packets_ = team.allocate(2 * most_.packets * int64_t{sizeof(Packet)}, Use::kPackets);
  partials_ = team.gpu()->allocate(most_.rows * n_ * size_of(dtype_));
  calls_ = team.gpu()->allocate(2 * sizeof(Word));
  prepare_packet_sum();
}

Tiles GpuPackets::tiles(int64_t m, WeightLayout layout) const {
  // All ranks' parts of k differ by little, and no word counts tiles: each chooses for itself.
  int64_t const k = k_ > 0 ? (k_ + team_.size() - 1) / team_.size() : 4096;
  Gpu const& gpu = *team_.gpu();
  int const most = plan_.spare > 0 ? gemm_blocks(plan_, gpu) : gpu.most_processors();
  return choose_tiles(plan_, {m}, n_, k, layout, false, most);
}

sm90::Launch GpuPackets::gemm(Tiles const& tiles, int64_t m, Tensor const& x, Tensor const& weight,
                              WeightLayout layout) const {
  Gpu const& gpu = *team_.gpu();
  int const rank = team_.rank(), tile_m = tiles.config().tile_m();
  sm90::Launch l;
  l.config = tiles.row;
  // Nothing runs beside it. What waits in kernels of other ranks on this GPU has its own processors.
  l.blocks = gpu.mirrored() && plan_.spare == 0 ? 0 : gemm_blocks(plan_, gpu);
  l.a.base[rank] = x.data, l.a_stride = packed(x).stride;
  l.weight = weight, l.layout = layout;
  l.c.base[rank] = partials_.get(), l.c_stride = n_, l.store = plan_.store;
  l.order = arrange(Order::kNaive, Tiling::kAcross, {m, 1, 1}, tile_m, sm90::tiles_n(tiles.config(), n_), tiles.band, 0);
  l.gate = Open{rank, l.k()}, l.route = Keep{rank, m};
  l.dependent = true;
  return l;
}

void GpuPackets::run(Call const& call, Tiles const& tiles, int64_t m, Tensor const& x, Tensor const& weight,
                     WeightLayout layout, Tensor const& out, SumEpilogue const& epilogue, GpuRecording* recording,
                     Stream stream) {
  sm90::Launch l = gemm(tiles, m, x, weight, layout);
  if (recording) l.stamps = recording->stamps(l);
  sm90::launch(l, stream);
  if (recording) recording->begin_part(SpanKind::kSum, stream);
  sum(call, out, epilogue, stream);
  if (recording) recording->end_part(stream);
}

void GpuPackets::sum(Call const& call, Tensor const& out, SumEpilogue const& epilogue, Stream stream) {
  Gpu const& gpu = *team_.gpu();
  int64_t const row_bytes = n_ * size_of(dtype_);
  PacketSum s{GpuPartialSums::summed(gpu, out, epilogue)};
  s.layout = layout(out.rows, team_.size(), row_bytes, shots(out.rows));
  s.packets = packets_->view<Packet>(0), s.half = most_.packets;
  s.calls = reinterpret_cast<Word*>(calls_.get());
  s.digest = call.digest, s.watch = call.watch;
  s.own = partials_.get(), s.mirrored = gpu.mirrored();
  // They wait for packets, so all of them have to fit, and where others share the GPU leave room as GEMMs do.
  int const blocks = gpu.shared() ? gemm_blocks(plan_, gpu) : 2 * gpu.most_processors();
  sum_packets(s, blocks, stream);
}

}  // namespace flux
