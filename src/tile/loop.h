#pragma once
// The one loop. Load, multiply, store: one after another, or each in a role of its own.
//
// An engine gives
//   kRoles                       whether load, multiply and store run side by side
//   roles(start, load, multiply, store, announce)   with kRoles: begins a walk by start() in each role and hands it to
//                                the role
//   first(), stride()            which tiles of the schedule are this worker's
//   timed(phase, tile, f)        runs f, and keeps its times where a timeline is asked for
//   ahead(tile, k)               may ask for the weights of a range of k, before the rows are waited for
//   check(ok)                    takes note of a wait that failed; true: go on
//   load(place, tile, k)         brings the rows at `place` and their weights, for a range of k
//   multiply(tile, k)            accumulates
//   store(place, skip, tile, w)  writes the accumulators, from the tile's row `skip` on, as `w` says
//   finish(tile, announced)      all bands of the tile were named to store(): done with its accumulators after this;
//                                announced: publish() is called for this tile too
//   publish(f)                   calls f once the stores of the next tile, in the order of finish(), are performed
#include "tile/gate.h"
#include "tile/route.h"

namespace flux {

enum class Phase : Word { kWait, kMaths, kStore };

template <class Engine, class Route>
FLUX_HD bool store_tile(Engine& engine, Route const& route, Tile tile) {
  bool const stored = each_band(route.shards(), tile.range(), [&](Place band, int64_t first) {
    if (!engine.check(route.wait(band, first))) return false;
    if (planted(Bug::kAnnounceBeforeStore)) route.announce(band);
    for (int copy = 0; copy < route.copies(); ++copy)
      engine.store(route.where(band, first, copy), static_cast<int>(first - tile.row), tile, route.write(band));
    return true;
  });
  engine.finish(tile, route.announces());
  return stored;
}

template <class Engine, class Route>
FLUX_HD void announce_tile(Engine& engine, Route const& route, Tile tile) {
  engine.publish([&] {
    if (planted(Bug::kAnnounceBeforeStore)) return;
    each_band(route.shards(), tile.range(), [&](Place band, int64_t) { return route.announce(band), true; });
  });
}

/// Runs this worker's tiles. A wait that fails ends a sequential engine's loop; an engine with roles goes on without
/// waiting, so that its roles stay in step, and poisons its output.
template <class Engine, class Gate, class Route>
FLUX_HD void run(Engine& engine, Schedule const& order, Gate const& gate, Route const& route) {
  Shards const slices = gate.slices();
  auto start = [&] { return Walk(order, engine.first(), engine.stride()); };
  auto each = [](Walk walk, auto&& act) {
    for (; walk; ++walk)
      if (!act(*walk)) return;
  };
  auto load = [&](Tile tile, int s) {
    Rows const k{slices.begin(s), slices.size(s)};
    engine.ahead(tile, k);
    bool const ok = engine.timed(Phase::kWait, tile, [&] { return engine.check(gate.wait(tile.range(), s)); });
    if (ok) engine.load(gate.where(tile.range()), tile, k);
    return ok;
  };
  auto store = [&](Tile tile) {
    return engine.timed(Phase::kStore, tile, [&] { return store_tile(engine, route, tile); });
  };
  auto announce = [&](Tile tile) { return announce_tile(engine, route, tile), true; };
  if constexpr (Engine::kRoles) {
    engine.roles(
        start,
        [&](Walk const& walk) {
          each(walk, [&](Tile tile) {
            for (int s = 0; s < slices.ranks; ++s) load(tile, s);
            return true;
          });
        },
        [&](Walk const& walk) {
          each(walk, [&](Tile tile) {
            return engine.timed(Phase::kMaths, tile, [&] {
              return engine.multiply(tile, Rows{0, slices.total}), true;
            });
          });
        },
        [&](Walk const& walk) { each(walk, store); },
        [&](Walk const& walk) {
          if (route.announces()) each(walk, announce);
        });
  } else {
    each(start(), [&](Tile tile) {
      for (int s = 0; s < slices.ranks; ++s) {
        if (!load(tile, s)) return false;
        engine.timed(Phase::kMaths, tile, [&] {
          return engine.multiply(tile, Rows{slices.begin(s), slices.size(s)}), true;
        });
      }
      return store(tile) && (!route.announces() || announce(tile)) && engine.check(true);
    });
  }
}

}  // namespace flux
