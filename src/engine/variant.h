#pragma once
// A gate or a route chosen at run time. GPU kernels take one of each as a value, so that a kernel is instantiated per
// tile shape, weight layout and dtype alone; the choice is made once a tile, outside the main loop.
#include "tile/gate.h"
#include "tile/route.h"

namespace flux {

struct AnyGate {
  enum class Kind { kOpen, kArrival, kRemote } kind;
  union {
    Open open;
    Arrival arrival;
    Remote remote;
  };

  AnyGate() : AnyGate(Open{}) {}
  AnyGate(Open const& gate) : kind(Kind::kOpen), open(gate) {}
  AnyGate(Arrival const& gate) : kind(Kind::kArrival), arrival(gate) {}
  AnyGate(Remote const& gate) : kind(Kind::kRemote), remote(gate) {}

  template <class F>
  FLUX_HD auto visit(F&& f) const {
    switch (kind) {
      case Kind::kArrival: return f(arrival);
      case Kind::kRemote: return f(remote);
      default: return f(open);
    }
  }
  FLUX_HD Shards slices() const {
    return visit([](auto const& gate) { return gate.slices(); });
  }
  FLUX_HD Place where(Rows rows) const {
    return visit([&](auto const& gate) { return gate.where(rows); });
  }
  FLUX_HD bool waits() const { return kind != Kind::kOpen; }
  /// Of a gate that waits, otherwise null.
  FLUX_HD Watch const* watch() const {
    return kind == Kind::kArrival ? &arrival.watch : kind == Kind::kRemote ? &remote.watch : nullptr;
  }
  FLUX_HD bool wait(Rows rows, int slice, Party party) const {
    return visit([&](auto const& gate) { return gate.wait(rows, slice, party); });
  }
};

/// All but the relay, which reads before it writes.
struct AnyRoute {
  enum class Kind { kKeep, kPush, kStage, kSum, kBroadcast } kind;
  union {
    Keep keep;
    Push push;
    Stage stage;
    Sum sum;
    Broadcast broadcast;
  };

  AnyRoute() : AnyRoute(Keep{}) {}
  AnyRoute(Keep const& route) : kind(Kind::kKeep), keep(route) {}
  AnyRoute(Push const& route) : kind(Kind::kPush), push(route) {}
  AnyRoute(Stage const& route) : kind(Kind::kStage), stage(route) {}
  AnyRoute(Sum const& route) : kind(Kind::kSum), sum(route) {}
  AnyRoute(Broadcast const& route) : kind(Kind::kBroadcast), broadcast(route) {}

  template <class F>
  FLUX_HD auto visit(F&& f) const {
    switch (kind) {
      case Kind::kPush: return f(push);
      case Kind::kStage: return f(stage);
      case Kind::kSum: return f(sum);
      case Kind::kBroadcast: return f(broadcast);
      default: return f(keep);
    }
  }
  FLUX_HD Shards shards() const {
    return visit([](auto const& route) { return route.shards(); });
  }
  FLUX_HD int copies() const { return kind == Kind::kBroadcast ? broadcast.copies() : 1; }
  FLUX_HD Place where(Place band, int64_t first, int copy) const {
    return visit([&](auto const& route) { return route.where(band, first, copy); });
  }
  FLUX_HD Write write(Place) const { return kind == Kind::kSum ? Write::kAdd : Write::kStore; }
  FLUX_HD bool wait(Place, int64_t) const { return true; }  // none of these waits
  FLUX_HD bool announces() const { return kind != Kind::kKeep; }
  FLUX_HD void announce(Place band) const {
    visit([&](auto const& route) { route.announce(band); });
  }
};

}  // namespace flux
