#include "op/gather.h"

#include <algorithm>

#include "op/checks.h"

namespace flux {

ArrivalWords arrival_words(int64_t m, int64_t k, int ranks, int64_t unit, Plan const& plan) {
  bool const remote = plan.transport == Transport::kRemote;
  ArrivalWords words;
  words.shards = {m, ranks, 1};
  words.slices = {k, remote ? 1 : plan.k_slices, unit};
  int64_t const whole = std::max<int64_t>(words.shards.largest(), 1);
  words.comm_rows = plan.comm_rows == 0 || remote ? whole : std::min(plan.comm_rows, whole);
  return words;
}

int64_t most_arrival_words(int64_t max_m, int64_t k, int ranks, int64_t unit, Plan const& plan) {
  // A small m has few rows a shard, but no fewer communication tiles than one.
  return std::max(arrival_words(max_m, k, ranks, unit, plan).size(), arrival_words(1, k, ranks, unit, plan).size());
}

void require_k_on_gpu(AllGatherGemm::Shape const& shape) {
  int64_t const unit = k_unit(shape.dtype);
  require(shape.k % unit == 0, "k is {}; on GPUs it is a multiple of {}", shape.k, unit);
}

std::vector<Transfer> copies(Gather const& g) {
  int const rank = g.rank, ranks = g.layout.shards.ranks;
  std::vector<Transfer> list;
  // One shard from rank `from` to rank `to`; `after` gives the word of ours to wait for, if any.
  auto send = [&](int shard, int from, int to, int awaited_from, Rows slices_sent, auto&& after) {
    Shards const &shards = g.layout.shards, &slices = g.layout.slices;
    bool const own = shard == rank && from == rank;
    for (int64_t tile = 0; tile * g.layout.comm_rows < shards.size(shard); ++tile) {
      int64_t const first = tile * g.layout.comm_rows;
      for (int s = static_cast<int>(slices_sent.first); s < slices_sent.end(); ++s) {
        Transfer t;
        t.row = shards.begin(shard) + first, t.rows = std::min(g.layout.comm_rows, shards.size(shard) - first);
        t.row_bytes = slices.size(s) * g.element_bytes, t.to_stride = g.row_bytes;
        t.from_stride = own ? g.own_stride : g.row_bytes;
        int64_t const column = slices.begin(s) * g.element_bytes;
        t.from = (own ? g.own + first * g.own_stride : g.buffers.at(from) + t.row * g.row_bytes) + column;
        t.to = g.buffers.at(to) + t.row * g.row_bytes + column;
        t.after = after(tile, s), t.goal = g.goal, t.awaited = Awaited::kRows;
        t.awaited_from = awaited_from, t.peer = to == rank ? -1 : to;
        t.set = g.words.at(to) + g.layout.index(shard, tile, s);
        list.push_back(t);
      }
    }
  };
  auto send_all = [&](Rows slices) {
    for (int i = 1; i < ranks; ++i) {
      if (g.plan.path == Path::kRing) {  // what came from the left goes on to the right
        int const shard = (rank - i + 1 + ranks) % ranks;
        send(shard, rank, (rank + 1) % ranks, (rank - 1 + ranks) % ranks, slices, [&](int64_t tile, int s) {
          return shard == rank ? nullptr : g.words.at(rank) + g.layout.index(shard, tile, s);
        });
      } else if (g.plan.transport == Transport::kPush) {
        send(rank, rank, (rank + i) % ranks, rank, slices, [](int64_t, int) { return nullptr; });
      } else {
        int const source = (rank - i + ranks) % ranks;
        send(source, source, rank, source, slices,
             [&](int64_t, int) { return g.readable ? const_cast<Word*>(g.readable) + source : nullptr; });
      }
    }
  };
  // Where shards are of one piece, a tile may need all of them: what it multiplies first comes first from everybody.
  int const slices = g.layout.slices.ranks;
  bool const by_slice = g.layout.tiles() == 1 && g.plan.path == Path::kDirect;
  for (int s = 0; s < (by_slice ? slices : 1); ++s) send_all(by_slice ? Rows{s, 1} : Rows{0, slices});
  return list;
}

std::vector<Transfer> pushes_of_others(Gather const& g) {
  if (g.plan.path == Path::kRing) {  // the left neighbour's, from its buffer
    Gather left = g;
    left.rank = (g.rank + g.layout.shards.ranks - 1) % g.layout.shards.ranks;
    left.own = g.buffers.at(left.rank) + g.layout.shards.begin(left.rank) * g.row_bytes;
    left.own_stride = g.row_bytes;
    std::vector<Transfer> list = copies(left);
    for (Transfer& t : list) t.after = nullptr;
    return list;
  }
  // A pull makes the same transfers, only by another hand.
  Gather pull = g;
  pull.plan.path = Path::kDirect, pull.plan.transport = Transport::kPull, pull.readable = nullptr;
  return copies(pull);
}

}  // namespace flux
