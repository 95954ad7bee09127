// What a simulated call does between nodes: rows along the rails, handed on; sums made on the way out.
#include <algorithm>

#include "plan/simulator.h"

namespace flux {

// Own rows to the node, then what comes along the rails, piece by piece behind its own word.
void Simulator::add_handing_on(int p) {
  SimulatedRank& s = rank(p);
  Nodes const n = nodes();
  ArrivalWords const& layout = r().arrival;
  auto neighbour = [&](int i) { return n.rank(n.node(p), (n.position(p) + i) % n.size()); };
  auto each_piece = [&](int shard, auto&& f) {
    for (int64_t tile = 0; tile * layout.comm_rows < layout.shards.size(shard); ++tile)
      for (int slice = 0; slice < layout.slices.ranks; ++slice) f(tile, slice);
  };
  for (int i = 1; i < n.size(); ++i)
    each_piece(p, [&](int64_t tile, int slice) { s.copies.push_back(piece(p, tile, slice, p, neighbour(i))); });
  for (int d = 1; d < n.count; ++d) {
    int const shard = n.rank((n.node(p) - d + n.count) % n.count, n.position(p));
    each_piece(shard, [&](int64_t tile, int slice) {
      for (int i = 1; i < n.size(); ++i) {
        s.copies.push_back(piece(shard, tile, slice, p, neighbour(i)));
        s.copies.back().after = s.words.data() + s.copies.back().set;
      }
    });
  }
}

// All pieces go as soon as the interface takes them, those for the next node first.
void Simulator::send_along_rails(int p, double at) {
  ArrivalWords const& layout = r().arrival;
  for (int64_t tile = 0; tile * layout.comm_rows < layout.shards.size(p); ++tile)
    for (int slice = 0; slice < layout.slices.ranks; ++slice)
      for (int peer : nodes().rail(p)) rail(piece(p, tile, slice, p, peer), at);
}

void Simulator::rail(Copy const& copy, double at) {
  Ports::Interval const out = nics_.leave(copy.from, at, copy.bytes, machine_.nic_gbps);
  double const end = nics_.enter(copy.to, out.begin, copy.bytes, machine_.nic_gbps).end;
  draw(copy.from, rail_track(), SpanKind::kCopy, out.begin, out.end, copy.row, copy.rows, -1, copy.to);
  push(end + machine_.nic_us, Kind::kRail, copy.to, static_cast<int>(on_rails_.size()));
  on_rails_.push_back(copy);
}

// A piece of rows is as if copied. A sum of another node is a partial of our rows. A result goes on to the node.
void Simulator::came(int index, double now) {
  Copy const c = on_rails_[static_cast<size_t>(index)];
  if (problem().gathers()) return landed(c, now);
  if (!c.result) return partial(c.to, static_cast<int>(c.set), now);
  SimulatedRank& s = rank(c.to);
  for (int to : nodes().neighbours(c.to)) {
    if (to == c.to) continue;
    s.copies.push_back(c);
    s.copies.back().from = c.to, s.copies.back().to = to;
  }
  push(now, Kind::kCopy, c.to, 0);
  landed(c, now);
}

// One neighbour's partial of a band is where the band's partials meet. The last of them makes the sum go, unless the
// rows are ours: those are summed behind the GEMM.
void Simulator::met(int at, int node, int band, double now) {
  Nodes const n = nodes();
  if (n.count == 1 || n.node(at) == node) return partial(at, band, now);
  SimulatedRank& s = rank(at);
  BandWords const& bands = r().bands;
  if (--s.meeting[static_cast<size_t>(node * bands.most() + band)] > 0) return;
  Place const rows = bands.place(n.rank(node, n.position(at)), band);
  Copy sum = whole(bands.shards.begin(rows.rank) + rows.row, rows.rows);
  sum.from = at, sum.to = rows.rank, sum.set = band;
  double const read_and_written = (n.size() + 1) * sum.bytes;
  s.added = std::max(s.added, now) + read_and_written / (machine_.memory_gbps * kSumReaches) / 1e3;
  rail(sum, s.added);
}

// An all-reduce's summed shard: to the node, and along the rails.
void Simulator::send_results(int p, double now) {
  Nodes const n = nodes();
  for (int i = 1; i < n.size(); ++i) add_result(p, n.rank(n.node(p), (n.position(p) + i) % n.size()));
  Shards const shards{problem().m, count(), 1};
  Copy mine = whole(shards.begin(p), shards.size(p));
  mine.from = p, mine.result = true;
  for (int peer : n.rail(p)) {
    mine.to = peer;
    if (mine.rows > 0) rail(mine, now);
  }
}

}  // namespace flux
