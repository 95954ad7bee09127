#include "plan/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plan/simulator.h"

namespace flux {

void Simulator::draw(int p, int track, SpanKind kind, double begin, double end, int64_t row, int64_t rows, int n,
                     int peer) {
  if (!draw_) return;
  Span span;
  span.rank = p, span.track = track, span.kind = kind, span.peer = peer;
  span.feeds = problem().gathers() ? SpanKind::kMaths : SpanKind::kSum;
  span.begin_ns = std::llround(begin * 1e3), span.end_ns = std::llround(end * 1e3);
  span.row = row, span.rows = rows, span.n = n;
  out_.timeline.spans.push_back(span);
}

Simulation Simulator::run() {
  while (!events_.empty()) {
    Event const e = events_.top();
    events_.pop();
    switch (e.kind) {
      case Kind::kTile: tile(e.rank, e.index, e.at); break;
      case Kind::kMultiplied: multiplied(e.rank, e.index, e.at); break;
      case Kind::kStored: stored(e.rank, e.index, e.at); break;
      case Kind::kCopy: copy(e.rank, e.at); break;
      case Kind::kArrived: arrived(e.rank, e.index, e.at); break;
      case Kind::kPartial: met(e.rank, e.index / r().bands.most(), e.index % r().bands.most(), e.at); break;
      case Kind::kRail: came(e.index, e.at); break;
    }
  }
  finish();
  return std::move(out_);
}

void Simulator::finish() {
  int slowest = 0;
  for (int p = 0; p < count(); ++p)
    if (rank(p).end > rank(slowest).end) slowest = p;
  if (machine_.mirror) slowest = Shards{problem().m, count(), 1}.owner(problem().m / 2);  // the one that is measured
  SimulatedRank const& s = rank(slowest);
  for (Worker const& worker : s.workers) out_.waited_us += worker.waited, out_.stalled_us += worker.stalled;
  double const many = std::max<double>(static_cast<double>(s.workers.size()), 1);
  out_.waited_us /= many, out_.stalled_us /= many;
  out_.total_us = s.end + (r().shots != PacketShots::kNone ? 0 : machine_.call_us / 2);
  out_.behind_us = out_.total_us - s.gemm_end;
  out_.moved_bytes = ports_.bytes() + nics_.bytes();
  out_.busiest_us = std::max(ports_.busiest_us(), nics_.busiest_us());
  if (draw_) describe();
}

// The facts and tracks of the timeline.
void Simulator::describe() {
  Timeline& t = out_.timeline;
  t.title = fmt::format("simulated {}", name(problem().op));
  t.facts = {{"problem", to_string(problem())},
             {"machine", machine_.name + ", simulated"},
             {"tile", fmt::format("{}x{}", r().shape.tile_m, r().shape.tile_n)}};
  for (int p = 0; p < count(); ++p) {
    int const copies = engine_track(rank(p));
    for (int w = 0; w < copies; ++w) t.tracks[{p, w}] = fmt::format("worker {}", w);
    t.tracks[{p, copies}] = r().copying > 0 ? fmt::format("{} copying blocks", r().copying) : "copy engine";
    if (!problem().gathers()) t.tracks[{p, copies + 1}] = "sums";
    if (problem().nodes > 1) t.tracks[{p, rail_track()}] = "rail";
  }
}

Simulation simulate(Problem const& problem, Plan const& plan, Machine const& machine, bool draw) {
  return Simulator(problem, plan, machine, draw).run();
}

}  // namespace flux
