#include "op/node_sums.h"

namespace flux {

Transfer rows_of(BandWords const& bands, Place band, int64_t row_bytes, Word goal) {
  Transfer t;
  t.row = bands.shards.begin(band.rank) + band.row, t.rows = band.rows;
  t.row_bytes = t.to_stride = t.from_stride = row_bytes, t.goal = goal;
  return t;
}

NodeSums::NodeSums(int64_t words, int64_t bytes)
    : added_(static_cast<size_t>(words)),
      outbox_(static_cast<size_t>(bytes)),
      engine_(no_link_, [this](Transfer const& t, Watch const&) {
        return add_(bands_.shards.band({t.row, t.rows}), t.to);
      }) {}

void NodeSums::begin(HostChannel& channel, Call const& call, BandWords const& bands, int64_t row_bytes,
                     Recording& recording, std::function<bool(Place, std::byte*)> add) {
  bands_ = bands, add_ = std::move(add);
  Nodes const& nodes = channel.team().nodes();
  int const rank = channel.team().rank();
  std::vector<Transfer> sums;
  for (int peer : nodes.rail(rank)) {
    Word* const added = added_.data() + nodes.node(peer) * bands.most();
    std::byte* const outbox = outbox_.data() + nodes.node(peer) * bands.shards.largest() * row_bytes;
    std::vector<Transfer> leaving;
    for (int b = 0; b < bands.count(peer); ++b) {
      Place const band = bands.place(peer, b);
      Transfer t = rows_of(bands, band, row_bytes, call.digest);
      t.to = outbox + band.row * row_bytes, t.set = added + b;
      sums.push_back(t);
      t.from = std::exchange(t.to, nullptr), t.after = std::exchange(t.set, nullptr), t.clear_after = true;
      t.awaited = Awaited::kPartial, t.awaited_from = rank, t.peer = peer;
      leaving.push_back(t);
    }
    channel.rail()->send(peer, std::move(leaving), call.watch, recording.rail(peer));
  }
  engine_.enqueue(std::move(sums), {}, call.watch);
}

}  // namespace flux
