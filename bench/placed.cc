#include "bench/placed.h"

#include "world/team.h"

namespace flux::bench {

Placed::Placed(World& world) : world_(world) {
  if (world.on_gpu()) stream_ = world.team().gpu()->stream();
}

Tensor Placed::place(Tensor const& host) {
  if (!world_.on_gpu() || !host) return host;
  Tensor there = host;
  there.data = memory_.emplace_back(world_.team().gpu()->allocate(host.bytes())).get();
  copy(host, there);
  return there;
}

void Placed::settle() const {
  if (stream_) world_.team().gpu()->settle(stream());
}

void Placed::copy(Tensor const& from, Tensor const& to) const {
  settle();
  if (from.data != to.data && from.bytes() > 0) world_.team().gpu()->copy(to.data, from.data, from.bytes());
}

}  // namespace flux::bench
