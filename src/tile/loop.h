#pragma once
// The one loop. Wait, load, multiply, store, announce: one after another, or each in a role of its own.
//
// An engine gives
//   kRoles                       whether the five run side by side
//   roles(start, wait, load, multiply, store, announce)   with kRoles: begins a walk by start() in each role and hands
//                                it to the role
//   first(), stride()            which tiles of the schedule are this worker's
//   timed(phase, tile, f)        runs f, and keeps its times where a timeline is asked for
//   party()                      which part of a wait is the caller's
//   admit(ok)                    the gate's next wait has ended, well or not: load() may go on; true: go on
//   check(ok)                    takes note of a route's wait that failed; true: go on
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
  auto each_slice = [&](Walk walk, auto&& act) {
    each(walk, [&](Tile tile) {
      for (int s = 0; s < slices.ranks; ++s) act(tile, s);
      return true;
    });
  };
  auto k_of = [&](int s) { return Rows{slices.begin(s), slices.size(s)}; };
  auto wait = [&](Tile tile, int s) {
    return engine.timed(Phase::kWait, tile, [&] { return engine.admit(gate.wait(tile.range(), s, engine.party())); });
  };
  auto load = [&](Tile tile, int s) { engine.load(gate.where(tile.range()), tile, k_of(s)); };
  auto multiply = [&](Tile tile, Rows k) {
    return engine.timed(Phase::kMaths, tile, [&] { return engine.multiply(tile, k), true; });
  };
  auto store = [&](Tile tile) {
    return engine.timed(Phase::kStore, tile, [&] { return store_tile(engine, route, tile); });
  };
  auto announce = [&](Tile tile) { return announce_tile(engine, route, tile), true; };
  if constexpr (Engine::kRoles) {
    engine.roles(
        start,
        [&](Walk const& walk) {
          if (gate.waits()) each_slice(walk, wait);
        },
        [&](Walk const& walk) { each_slice(walk, load); },
        [&](Walk const& walk) { each(walk, [&](Tile tile) {
                                  return multiply(tile, {0, slices.total});
                                }); },
        [&](Walk const& walk) { each(walk, store); },
        [&](Walk const& walk) {
          if (route.announces()) each(walk, announce);
        });
  } else {
    for (int i = engine.first(); i < order.size(); i += engine.stride()) {
      Tile const tile = order[i];  // a walk's state would take a GPU's threads more registers than it saves divisions
      for (int s = 0; s < slices.ranks; ++s) {
        if (!wait(tile, s)) return;
        load(tile, s);
        multiply(tile, k_of(s));
      }
      if (!store(tile) || (route.announces() && !announce(tile)) || !engine.check(true)) return;
    }
  }
}

}  // namespace flux
