// The tiles of a simulated GEMM: wait, multiply, store, announce.
#include "engine/sm90/config.h"
#include "plan/simulator.h"

namespace flux {
namespace {

constexpr double kLocalStoreUs = 1.5;  // until a tile stored here may be announced

}  // namespace

void Simulator::begin_gemm(int p, double at) {
  SimulatedRank& s = rank(p);
  s.gemm_begin = at + kBefore * machine_.gemm_us;
  int64_t const blocks = std::max(r().processors / r().shape.cluster, 1);
  int64_t const many = std::min<int64_t>(blocks, s.schedule.size());
  for (int64_t w = 0; w < many; ++w) {
    s.workers.emplace_back(Walk(s.schedule, w, many));
    push(s.gemm_begin, Kind::kTile, p, static_cast<int>(w));
  }
  s.at_work = static_cast<int>(many);
  if (many == 0) gemm_ended(p, s.gemm_begin);
}

// Whether the tile's slice may be read; otherwise the worker is parked at the first word that is missing. The gate
// itself has the last word.
bool Simulator::ready(SimulatedRank& s, Tile tile, int slice, int worker) {
  if (auto const* arrival = std::get_if<Arrival>(&s.gate)) {
    ArrivalWords const& layout = arrival->layout;
    bool const all = each_band(layout.shards, tile.range(), [&](Place band, int64_t) {
      if (band.rank == arrival->rank) return true;
      for (int64_t t = band.row / layout.comm_rows; t * layout.comm_rows < band.row + band.rows; ++t) {
        auto const word = static_cast<size_t>(layout.index(band.rank, t, slice));
        if (s.words[word] != SimulatedRank::kGoal) return s.waiting[word].push_back(worker), false;
      }
      return true;
    });
    if (!all) return false;
  }
  return std::visit([&](auto const& gate) { return gate.wait(tile.range(), slice); }, s.gate);
}

void Simulator::tile(int p, int w, double now) {
  SimulatedRank& s = rank(p);
  Worker& worker = s.workers[static_cast<size_t>(w)];
  Tile const tile = *worker.walk;
  int const slices = std::visit([](auto const& gate) { return gate.slices().ranks; }, s.gate);
  if (!ready(s, tile, worker.slice, w)) {
    if (worker.parked < 0) worker.parked = now, ++s.parked;
    return;
  }
  if (worker.parked >= 0) {
    draw(p, w, SpanKind::kWait, worker.parked, now, tile.row, tile.rows, tile.n);
    worker.waited += now - worker.parked, worker.parked = -1, --s.parked;
  }
  if (worker.slice == 0) worker.began = now;
  double end = now + r().tile_us / slices / (s.engine_busy > now ? machine_.beside : 1);
  if (auto const* remote = std::get_if<Remote>(&s.gate)) {
    Place const at = remote->where(tile.range());
    double const bytes = static_cast<double>(tile.rows) * static_cast<double>(problem().row_bytes());
    end = std::max(end, ports_.carry(at.rank, p, now, bytes, machine_.link.load_gbps).end);
  }
  if (++worker.slice < slices) return push(end, Kind::kTile, p, w);
  worker.slice = 0;
  double const handed = std::max(end, worker.stored);  // the staging slots hold one tile
  worker.stalled += handed - end;
  draw(p, w, SpanKind::kMaths, worker.began, end, tile.row, tile.rows, tile.n);
  ++out_.tiles;
  if (std::holds_alternative<Keep>(s.route)) return ++worker.walk, next(s, p, w, handed);
  worker.tile = tile;
  push(handed, Kind::kMultiplied, p, w);
}

void Simulator::next(SimulatedRank& s, int p, int w, double now) {
  if (s.workers[static_cast<size_t>(w)].walk) return push(now, Kind::kTile, p, w);
  if (--s.at_work == 0) {
    double end = now;
    for (Worker const& worker : s.workers) end = std::max(end, worker.stored);
    gemm_ended(p, end);
  }
}

double Simulator::columns(Tile tile) const {
  int64_t const width = r().shape.tile_n;
  return static_cast<double>(std::min(width, problem().n - tile.n * width));
}

// What the storer of a block needs for its part of a tile, wherever it goes: measured as the GEMMs that each
// instruction holds up (docs/engines.md, try 10).
double Simulator::storing_us(Tile tile) const {
  if (machine_.engine != EngineKind::kSm90) return 0;
  constexpr int kSwizzled = 64;  // chunks of so many columns go in pieces of 16 bytes
  StoreKind const store = r().plan.store;
  double const by_rows = sm90::kTable[r().shape.row].chunk_n == kSwizzled ? 0.15 : 0.5;
  double const bytes_a_cycle = store == StoreKind::kTensor ? 32 : store == StoreKind::kVector ? 2.2 : by_rows;
  return tile.rows * columns(tile) * element_ / r().shape.cluster / bytes_a_cycle / out_.parts.clock_mhz;
}

// A tile crosses the link. In a mirror what comes in is the replay's business, and begins when ours has gone: until
// then the link carries one direction alone.
double Simulator::store(int from, int to, double now, double bytes) {
  constexpr double kOneWay = 2.2;  // stores across PCIe 5: 46 GB/s alone, 21 while the other direction is busy
  double const rate = machine_.link.store_gbps;
  if (through_host()) return from == to ? now : ports_.leave(from, now, bytes, rate).end;
  if (!machine_.mirror) return ports_.carry(from, to, now, bytes, rate).end;
  return ports_.leave(from, now, bytes, rank(from).replay_busy > now ? rate : kOneWay * rate).end;
}

// The maths hand the tile over; it is written while they go on.
void Simulator::multiplied(int p, int w, double now) {
  SimulatedRank& s = rank(p);
  Worker& worker = s.workers[static_cast<size_t>(w)];
  double end = now + storing_us(worker.tile);
  std::visit(
      [&](auto const& route) {
        each_band(route.shards(), worker.tile.range(), [&](Place band, int64_t first) {
          double const bytes = static_cast<double>(band.rows) * columns(worker.tile) * element_;
          for (int copy = 0; copy < route.copies(); ++copy) {
            Place const to = route.where(band, first, copy);
            int const there = r().way == Way::kPush ? nodes().gateway(p, to.rank) : to.rank;
            double const left = there == p ? now : store(p, there, now, bytes);
            end = std::max(end, left + kLocalStoreUs);
          }
          return true;
        });
      },
      s.route);
  draw(p, w, SpanKind::kStore, now, end, worker.tile.row, worker.tile.rows, worker.tile.n);
  worker.stored = end, worker.storing = worker.tile;
  push(end, Kind::kStored, p, w);
  ++worker.walk;
  next(s, p, w, now);
}

// Announced by the route itself, in its own words; whoever waits there is told.
void Simulator::stored(int p, int w, double now) {
  SimulatedRank& s = rank(p);
  Tile const tile = s.workers[static_cast<size_t>(w)].storing;
  std::visit(
      [&](auto const& route) {
        if constexpr (requires { route.out; }) {
          each_band(route.shards(), tile.range(), [&](Place band, int64_t) {
            int const index = route.out.bands.index(band);
            int64_t const word = route.out.bands.index(p, index);
            Word const* const told = route.out.words.at(band.rank) + word;
            bool const before = *told == SimulatedRank::kGoal;
            route.announce(band);
            if (before || *told != SimulatedRank::kGoal) return true;
            if constexpr (std::is_same_v<std::decay_t<decltype(route)>, Stage>) {
              if (nodes().gateway(p, band.rank) == p) met(p, nodes().node(band.rank), index, now);
              if (s.copy_waits) s.copy_waits = false, push(now, Kind::kCopy, p, 0);
            } else {
              bool const to_all = std::is_same_v<std::decay_t<decltype(route)>, Broadcast>;
              double const rows = static_cast<double>(route.out.bands.place(band.rank, index).rows);
              for (int i = 0; i < (to_all ? count() : 1); ++i)
                announced(p, to_all ? (p + i) % count() : band.rank, index, rows, now);
            }
            return true;
          });
        }
      },
      s.route);
}

void Simulator::gemm_ended(int p, double now) {
  SimulatedRank& s = rank(p);
  double const end = now + (1 - kBefore) * machine_.gemm_us;
  if (r().shots != PacketShots::kNone) {
    s.gemm_end = s.end = end;
    return ++multiplied_ == count() && !problem().gathers() ? sum_packets() : void();
  }
  if (!r().fused && !problem().gathers()) {
    push(end, Kind::kCopy, p, 0);
    for (int node = 0; node < nodes().count; ++node)
      for (int b = 0; b < r().bands.count(nodes().on_node(p, node)); ++b) met(p, node, b, end);
  }
  s.gemm_end = s.end = s.summed = end;
  for (size_t b = 0; b < s.missing.size(); ++b)
    if (s.missing[b] == 0) sum(p, static_cast<int>(b), s.gemm_end);
}

}  // namespace flux
