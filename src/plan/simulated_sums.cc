// Copies, the words behind them, and the sums of a simulated call.
#include <utility>

#include "plan/simulator.h"

namespace flux {
namespace {

// Blocks that copy: four of them carry 182 GB/s between two H200s. Pieces go side by side, so the next begins before
// one has ended; how much each costs is an estimate. The first waits for the kernel and its first bytes. Beside a GEMM
// they get less of the memory than copy engines do.
constexpr double kBlockGbps = 45, kBlockCopyUs = 0.5, kBlockStartUs = 8, kBlocksBeside = 0.86;
// Beside a GEMM that takes more than half of the memory's rate, blocks that read here wait; so much is left if it takes
// all.
constexpr double kReadBeside = 0.45;
// Across PCIe calls whose first piece waits for what a GEMM stores take so much longer than those that copy behind it.
constexpr double kFirstStoredUs = 12;
constexpr double kBandUs = 1.0;  // a band of sums, beside its bytes

}  // namespace

// Of their rate alone.
double Simulator::blocks_beside(bool writes) const {
  return kBlocksBeside - (writes ? (kBlocksBeside - kReadBeside) * std::max(2 * r().memory_share - 1, 0.0) : 0);
}

// Through host memory a copy uses one way of its own rank's link, in or out, and nobody else's.
Ports::Interval Simulator::carry(Copy const& c, double at, double gbps) {
  if (!through_host()) return ports_.carry(c.from, c.to, at, c.bytes, gbps);
  bool const fetches = problem().gathers() && !c.result;
  return fetches ? ports_.enter(c.to, std::max(at, c.ready_us), c.bytes, gbps)
                 : ports_.leave(c.from, at, c.bytes, gbps);
}

// When what lies in host memory has come to the GPU.
double Simulator::fetched(int to, double at, double bytes) {
  return ports_.enter(to, at + machine_.link.copy_us, bytes, machine_.link.pull_gbps).end;
}

void Simulator::copy(int p, double now) {
  SimulatedRank& s = rank(p);
  if (s.next_copy == s.copies.size() || now < s.engine_busy) return;  // busy: it asks again
  Copy const& c = s.copies[s.next_copy];
  for (Word const* word : {c.after, c.and_after})
    if (word && *word != SimulatedRank::kGoal) return void(s.copy_waits = true);
  LinkRates const& link = machine_.link;
  bool const writes = c.from == p, blocks = r().copying > 0 && !c.result;
  double before = link.copy_us + (s.next_copy == 0 ? link.start_us : 0), behind = link.word_us,
         rate = writes ? link.push_gbps : link.pull_gbps;
  if (s.next_copy == 0 && c.after && r().fused && across_pcie(link.kind)) before += kFirstStoredUs;
  if (blocks) {
    // A block that reads ends with the round trip of its last loads; nobody's pieces lie side by side there.
    before = kBlockCopyUs + (writes ? 0 : 2 * link.flag_us) + (s.next_copy == 0 ? machine_.gemm_us + kBlockStartUs : 0),
    behind = 0;
    rate = std::min(writes ? link.block_gbps : std::min(link.block_gbps, link.load_gbps), kBlockGbps * r().copying);
  }
  if (s.multiplies(now)) rate *= blocks ? std::min(blocks_beside(writes), link.beside) : link.beside;
  auto [begin, end] = carry(c, now + before, rate);
  draw(p, engine_track(s), SpanKind::kCopy, begin - before, end, c.row, c.rows, -1, c.to == p ? -1 : c.to);
  s.engine_busy = end;
  if (through_host() && writes) end = fetched(c.to, end + behind + link.flag_us, c.bytes);
  push(end + behind + (c.to == p ? 0 : link.flag_us), Kind::kArrived, p, static_cast<int>(s.next_copy++));
  push(s.engine_busy, Kind::kCopy, p, 0);
}

void Simulator::arrived(int p, int index, double now) { landed(rank(p).copies[static_cast<size_t>(index)], now); }

void Simulator::landed(Copy const& c, double now) {
  SimulatedRank& to = rank(c.to);
  if (c.result) return --to.incoming == 0 ? gathered_sums(to, now) : void();
  to.words[static_cast<size_t>(c.set)] = SimulatedRank::kGoal;
  if (to.copy_waits) to.copy_waits = false, push(now, Kind::kCopy, c.to, 0);  // on a ring: it goes on
  if (!problem().gathers()) {
    bool const passes = r().way == Way::kRing && c.set / r().bands.most() != c.to;
    if (passes) return;
    return met(c.to, static_cast<int>(c.set / words_of_node()), static_cast<int>(c.set % r().bands.most()), now);
  }
  for (int worker : std::exchange(to.waiting[static_cast<size_t>(c.set)], {})) push(now, Kind::kTile, c.to, worker);
  if (--to.incoming == 0 && !r().fused) begin_gemm(c.to, now);
}

// A band's partials have been stored at their owner. In a mirror those of the peer are copied then, as many bytes.
void Simulator::announced(int from, int owner, int band, double rows, double now) {
  int const to = r().way == Way::kBroadcast ? owner : nodes().gateway(from, owner);
  int const node = r().way == Way::kBroadcast ? 0 : nodes().node(owner);
  if (from == to) return met(to, node, band, now);
  LinkRates const& link = machine_.link;
  double at = now + link.flag_us;
  if (through_host()) at = fetched(owner, at, rows * static_cast<double>(problem().row_bytes())) + link.word_us;
  if (machine_.mirror) {
    SimulatedRank& s = rank(owner);
    bool const by_blocks = r().way == Way::kBroadcast;  // all at once; copies come one by one
    at = std::max(at, s.replay_busy) + (by_blocks ? 0 : link.copy_us) + (s.replay_busy < 0 ? link.start_us : 0);
    at = ports_.enter(owner, at, rows * static_cast<double>(problem().row_bytes()), link.push_gbps).end;
    if (!by_blocks) at += link.word_us;
    s.replay_busy = at;  // the replay's next copy waits for a word of its own, in the same stream
  }
  push(at, Kind::kPartial, to, node * r().bands.most() + band);
}

// One more source's partial of a band is here.
void Simulator::partial(int owner, int band, double now) {
  SimulatedRank& s = rank(owner);
  if (--s.missing[static_cast<size_t>(band)] == 0 && s.gemm_end >= 0) sum(owner, band, now);
}

// The pass of sums runs behind the GEMM and takes bands as they come.
void Simulator::sum(int p, int band, double now) {
  SimulatedRank& s = rank(p);
  BandWords const& bands = r().bands;
  Place const rows = bands.place(r().way == Way::kBroadcast ? 0 : p, band);
  int const slots = problem().node_ranks() + problem().nodes - 1;
  double const parts = (r().way == Way::kSum || r().way == Way::kRing ? std::min(2, count()) : slots) + 1;
  double const bytes = parts * static_cast<double>(rows.rows) * static_cast<double>(problem().row_bytes());
  double const begin = std::max(s.summed, now);
  s.summed = begin + kBandUs / (r().staged() ? 1 : 8) + bytes / (machine_.memory_gbps * kSumReaches) / 1e3;
  draw(p, engine_track(s) + 1, SpanKind::kSum, begin, s.summed, bands.shards.begin(rows.rank) + rows.row, rows.rows,
       -1);
  if (--s.bands_left == 0) summed(p, s.summed);
}

void Simulator::summed(int p, double now) {
  SimulatedRank& s = rank(p);
  s.end = now;
  if (problem().op != Op::kGemmAllReduce || r().way == Way::kBroadcast) return;
  if (s.incoming == 0) gathered_sums(s, now);
  send_results(p, now);
  push(now, Kind::kCopy, p, 0);
}

/// When each rank has what it waits for, if it has its own at `ready`: all send at once.
std::vector<double> Simulator::exchange(std::vector<double> ready) {
  // A mirror polls what it awaits across the link, beside what it sends: twice, where it awaits sums as well.
  double const beside_polls = problem().op == Op::kGemmAllReduce ? 0.5 : 0.75;
  double const gbps = machine_.link.block_gbps * (machine_.mirror ? beside_polls : 1);
  Shards const owners{problem().m, count(), 1};
  for (double& at : ready) at += kPacketsStartUs;
  auto shot = [&](auto&& rows) {
    std::vector<double> here = ready;
    for (int i = 1; i < count(); ++i)
      for (int p = 0; p < count(); ++p) {
        int const to = (p + i) % count();
        double const bytes = static_cast<double>(rows(p, to)) * packet_row_bytes(problem());
        if (bytes == 0) continue;
        double const sent = ports_.carry(p, to, ready[p], bytes, gbps).end;
        here[to] = std::max(here[to], sent + machine_.link.flag_us);
      }
    for (double& at : here) at += kPacketsTripUs;
    ready = here;
  };
  auto to_owner = [&](int, int to) { return owners.size(to); };
  auto to_all = [&](int from, int) { return owners.size(from); };
  switch (problem().op) {
    case Op::kAllGatherGemm: shot(to_all); break;
    case Op::kGemmReduceScatter: shot(to_owner); break;
    case Op::kGemmAllReduce:
      if (r().shots == PacketShots::kOne) {
        shot([&](int, int) { return problem().m; });
      } else {
        shot(to_owner), shot(to_all);
      }
  }
  return ready;
}

void Simulator::sum_packets() {
  std::vector<double> ready;
  for (SimulatedRank const& s : ranks_) ready.push_back(s.gemm_end);
  ready = exchange(ready);
  for (int p = 0; p < count(); ++p) {
    SimulatedRank& s = rank(p);
    s.end = s.summed = ready[p];
    draw(p, engine_track(s) + 1, SpanKind::kSum, s.gemm_end, s.end, 0, problem().m, -1);
  }
}

/// All sums of an all-reduce are here: a pass over all rows ends it.
void Simulator::gathered_sums(SimulatedRank& s, double now) {
  double const bytes = 2.0 * static_cast<double>(problem().m) * static_cast<double>(problem().row_bytes());
  s.end = std::max(now, s.summed) + machine_.gemm_us / 2 + bytes / (machine_.memory_gbps * kSumReaches) / 1e3;
}

}  // namespace flux
