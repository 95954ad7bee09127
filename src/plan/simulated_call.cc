// What stands before a simulated call: words, gates, routes, and the list of every rank's copies.
#include <algorithm>

#include "plan/simulator.h"

namespace flux {

Copy Simulator::piece(int shard, int64_t tile, int slice, int from, int to) const {
  ArrivalWords const& layout = r().arrival;
  int64_t const first = tile * layout.comm_rows;
  Copy c = whole(layout.shards.begin(shard) + first, std::min(layout.comm_rows, layout.shards.size(shard) - first));
  c.from = from, c.to = to, c.set = layout.index(shard, tile, slice);
  c.bytes *= static_cast<double>(layout.slices.size(slice)) / static_cast<double>(layout.slices.total);
  if (through_host()) {  // each piece once, behind those before it, then its word
    LinkRates const& link = machine_.link;
    double const before = static_cast<double>(first * problem().row_bytes()) + c.bytes * slice;
    c.ready_us = machine_.call_us / 2 + link.start_us +
                 static_cast<double>(tile * layout.slices.ranks + slice + 1) * link.copy_us +
                 (before + c.bytes) / link.push_gbps / 1e3 + link.word_us + link.flag_us;
  }
  return c;
}

Copy Simulator::whole(int64_t row, int64_t rows) const {
  Copy c;
  c.row = row, c.rows = rows, c.bytes = static_cast<double>(rows) * static_cast<double>(problem().row_bytes());
  return c;
}

void Simulator::add_shard(int engine, int from, int to) {
  ArrivalWords const& layout = r().arrival;
  for (int64_t t = 0; t * layout.comm_rows < layout.shards.size(from); ++t)
    for (int s = 0; s < layout.slices.ranks; ++s) rank(engine).copies.push_back(piece(from, t, s, from, to));
}

void Simulator::add_result(int from, int to) {
  Shards const shards{problem().m, count(), 1};
  if (shards.size(from) == 0) return;
  Copy c = whole(shards.begin(from), shards.size(from));
  c.from = from, c.to = to, c.result = true;
  rank(from).copies.push_back(c);
}

void Simulator::prepare_gather(int p) {
  SimulatedRank& s = rank(p);
  Shards const& shards = r().arrival.shards;
  Plan const& plan = r().plan;
  Watch watch;
  watch.rank = p, watch.ranks = count();
  s.words.resize(static_cast<size_t>(r().in_place() ? count() : r().arrival.size()));
  if (r().in_place()) {
    s.gate = Remote{p, shards, problem().k, s.words.data(), SimulatedRank::kGoal, watch};
    return;
  }
  s.gate = Arrival{p, r().arrival, s.words.data(), SimulatedRank::kGoal, watch};
  bool const pulls = plan.transport == Transport::kPull || through_host();  // from where the sources have put them
  if (plan.path == Path::kRing) return prepare_ring(p);
  if (problem().nodes > 1) return add_handing_on(p);
  for (int i = 1; i < count(); ++i) {
    int const source = (p - i + count()) % count(), to = (p + i) % count();
    add_shard(p, pulls ? source : p, pulls ? p : to);
  }
  // Where shards are of one piece, a tile may need all of them: what it multiplies first comes first from everybody.
  if (r().arrival.tiles() == 1)
    std::ranges::stable_sort(s.copies, {}, [&](Copy const& c) { return c.set % r().arrival.slices.ranks; });
}

// What came from the left goes on to the right.
void Simulator::prepare_ring(int p) {
  SimulatedRank& s = rank(p);
  for (int i = 1; i < count(); ++i) {
    int const shard = (p - i + 1 + count()) % count();
    size_t const first = s.copies.size();
    add_shard(p, shard, (p + 1) % count());
    for (size_t c = first; c < s.copies.size(); ++c) {
      s.copies[c].from = p;
      if (shard != p) s.copies[c].after = s.words.data() + s.copies[c].set;
    }
  }
}

// What came from the left is added to ours and goes on to the right; a ring begins behind a band's owner.
void Simulator::prepare_relay(int p) {
  SimulatedRank& s = rank(p);
  BandWords const& bands = r().bands;
  int64_t const each = count() * bands.most();
  for (int i = 1; i < count(); ++i) {
    int const owner = (p - i + count()) % count();
    for (int b = 0; b < bands.count(owner); ++b) {
      Place const band = bands.place(owner, b);
      Copy c;
      c.from = p, c.to = (p + 1) % count(), c.row = bands.shards.begin(owner) + band.row, c.rows = band.rows;
      c.bytes = static_cast<double>(band.rows) * static_cast<double>(problem().row_bytes());
      c.set = bands.index(owner, b);
      if (r().fused) c.after = s.departed.data() + owner * each + bands.index(p, b);
      if (i > 1) c.and_after = s.words.data() + c.set;
      s.copies.push_back(c);
    }
  }
}

void Simulator::prepare_sums(int p) {
  SimulatedRank& s = rank(p);
  BandWords const& bands = r().bands;
  bool const broadcast = r().way == Way::kBroadcast;
  int const owner = broadcast ? 0 : p;
  Nodes const n = nodes();
  int64_t const each = words_of_node();
  s.counts.resize(static_cast<size_t>(each));
  s.gate = Open{p, problem().local_k()};
  bool const around = r().way == Way::kRing;
  s.missing.assign(static_cast<size_t>(bands.count(owner)), around ? std::min(2, count()) : n.size() + n.count - 1);
  s.meeting.assign(static_cast<size_t>(n.count * bands.most()), n.size());
  s.bands_left = bands.count(owner);
  int64_t const slot_rows = broadcast ? problem().m : bands.shards.largest();
  Announcer out{bands, static_cast<int>(r().tiles_n()), s.counts.data(), {}, SimulatedRank::kGoal};
  for (int q = 0; q < count(); ++q) out.words.base[q] = rank(n.gateway(p, q)).words.data() + n.node(q) * each;
  if (r().staged()) {
    s.departed.resize(static_cast<size_t>(each * count()));
    for (int q = 0; q < count(); ++q)
      if (n.gateway(p, q) != p || around) out.words.base[q] = s.departed.data() + q * each;
  }
  if (around) prepare_relay(p);
  if (r().way == Way::kStage) {
    for (int i = 1; i < count(); ++i) {
      int const to = n.count == 1 ? (p + i) % count() : n.staged_to(p, i);
      if (n.gateway(p, to) == p) continue;  // its rows meet here
      for (int b = 0; b < bands.count(to); ++b) {
        Place const band = bands.place(to, b);
        Copy c;
        c.from = p, c.to = n.gateway(p, to), c.row = bands.shards.begin(to) + band.row, c.rows = band.rows;
        c.bytes = static_cast<double>(band.rows) * static_cast<double>(problem().row_bytes());
        c.set = n.node(to) * each + bands.index(p, b);
        if (r().fused) c.after = s.departed.data() + to * each + bands.index(p, b);
        s.copies.push_back(c);
      }
    }
  }
  switch (r().way) {
    case Way::kPush: s.route = Push{p, slot_rows, out}; break;
    case Way::kStage:
    case Way::kRing: s.route = Stage{p, out}; break;
    case Way::kSum: s.route = Sum{p, out}; break;
    case Way::kBroadcast: s.route = Broadcast{p, count(), problem().m, out}; break;
    case Way::kPackets:
    case Way::kNone: break;
  }
  if (!r().fused) s.route = Keep{p, problem().m};
}

// Nothing waits for words: sums are exchanged behind the GEMM (gemm_ended), rows before it, while weights are on their
// way already.
void Simulator::prepare_packets() {
  std::vector<double> begin(ranks_.size(), 0);
  if (problem().gathers()) {
    begin = exchange(begin);
    for (double& at : begin) at = std::max(at - kBefore * machine_.gemm_us, 0.0);
  }
  for (int p = 0; p < count(); ++p) {
    SimulatedRank& s = rank(p);
    s.schedule = r().schedule(p);
    s.gate = Open{p, problem().local_k()}, s.route = Keep{p, problem().m};
    begin_gemm(p, begin[static_cast<size_t>(p)]);
  }
}

void Simulator::prepare() {
  if (!problem().gathers())  // words do not move any more once a route points at them
    for (int p = 0; p < count(); ++p) rank(p).words.resize(static_cast<size_t>(problem().nodes * words_of_node()));
  double const begin = machine_.call_us / 2;
  if (r().shots != PacketShots::kNone) return prepare_packets();
  for (int p = 0; p < count(); ++p) {
    SimulatedRank& s = rank(p);
    s.schedule = r().schedule(p);
    if (problem().gathers()) {
      s.route = Keep{p, problem().m};
      prepare_gather(p);
    } else {
      prepare_sums(p);
    }
    s.waiting.resize(s.words.size());
    bool const pulls = r().plan.transport == Transport::kPull && problem().gathers();
    bool const copies_first = problem().gathers();
    if (problem().gathers()) send_along_rails(p, begin);
    if (copies_first || r().fused) push(begin + (pulls ? machine_.link.flag_us : 0), Kind::kCopy, p, 0);
    if (r().in_place())
      for (int q = 0; q < count(); ++q)
        if (q != p) s.words[static_cast<size_t>(q)] = SimulatedRank::kGoal;  // flag_us: in begin_gemm
  }
  for (Copy const& c : on_rails_) ++rank(c.to).incoming;
  if (problem().gathers())
    for (int p = 0; p < count(); ++p)
      for (Copy const& c : rank(p).copies) ++rank(c.to).incoming;
  else
    for (int p = 0; p < count(); ++p)
      for (int q = 0; q < count(); ++q) rank(p).incoming += p != q && Shards{problem().m, count(), 1}.size(q) > 0;
  for (int p = 0; p < count(); ++p)
    if (r().fused || !problem().gathers() || rank(p).incoming == 0)
      begin_gemm(p, begin + (r().in_place() ? machine_.link.flag_us : 0));
}

}  // namespace flux
