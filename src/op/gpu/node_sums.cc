// Partial sums over several nodes: what GpuPartialSums does of src/op/node_sums.h's.
#include <algorithm>

#include "op/gather.h"
#include "op/gpu/partial_sums.h"

namespace flux {

// A sum waits for the node's partials itself: the kernel that makes it stands before each piece that goes.
void GpuPartialSums::exchange_sums(GpuChannel& channel, Call const& call, Traffic const& t) const {
  Nodes const& nodes = team_.nodes();
  NodeSlots const places{nodes, t.rank};
  int const most = t.bands.most(), pieces = static_cast<int>(kRailPieces);
  int const together = plan_.comm_rows > 0 ? static_cast<int>(std::max<int64_t>(plan_.comm_rows / t.bands.height(), 1))
                                           : (most + pieces - 1) / pieces;
  std::byte* const ours = channel.data(call).at(t.rank);
  Word* const words = channel.words(call).at(t.rank);
  auto outbox = [&](int owner) {
    return behind_staging_ + places.first(owner) / nodes.size() * t.bands.shards.largest() * t.row_bytes;
  };
  auto list = [&](int owner, auto&& finish) {
    GpuRail::Pieces all;
    for (int b = 0; b < t.bands.count(owner); b += together) {
      int const end = std::min(b + together, t.bands.count(owner));
      Place rows = t.bands.place(owner, b);
      Place const last = t.bands.place(owner, end - 1);
      rows.rows = last.row + last.rows - rows.row;
      all.push_back({rows_of(t.bands, rows, t.row_bytes, t.goal), end - b});
      finish(all.back(), b, rows.row * t.row_bytes);
    }
    return all;
  };
  auto leaving = [&](int peer) {
    return list(peer, [&](GpuRail::Piece& p, int, int64_t at) { p.from = outbox(peer) + at, p.peer = peer; });
  };
  auto coming = [&](int peer) {
    int const slot = places.of_node(nodes.node(peer));
    return list(t.rank, [&](GpuRail::Piece& p, int band, int64_t at) {
      p.to = ours + slot * t.slot_rows * t.row_bytes + at, p.set = words + t.bands.index(slot, band);
      p.awaited_from = peer;
    });
  };
  channel.rail()->exchange(leaving, coming, call.watch, [&](int peer, size_t piece, Stream stream) {
    SlotSum sum = node_sum(t, peer, call.watch);
    sum.out = matrix(outbox(peer), slot_dtype_, t.bands.shards.size(peer), n_);
    sum.first_band = static_cast<int>(piece) * together, sum.end_band = sum.first_band + together;
    sum_slots(sum, kRailBlocks - kCommunicatorBlocks, stream);
  });
}

/// Of the node's partial sums of an owner's rows, where they meet here.
SlotSum GpuPartialSums::node_sum(Traffic const& t, int owner, Watch const& watch) const {
  Nodes const& nodes = team_.nodes();
  SlotSum sum;
  sum.bands = t.bands, sum.owner = owner, sum.watch = watch;
  sum.sources = sum.parts = nodes.size(), sum.words = t.words.at(owner), sum.goal = t.goal;
  std::ranges::copy(nodes.neighbours(t.rank), sum.whose);
  sum.slots = t.slots.at(owner), sum.slot_rows = t.slot_rows;
  if (staged()) sum.own = t.staging + t.bands.shards.begin(owner) * t.row_bytes, sum.own_part = nodes.position(t.rank);
  return sum;
}

}  // namespace flux
