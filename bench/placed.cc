#include "bench/placed.h"

#include "world/team.h"

namespace flux::bench {
Tensor Placed::place(Tensor const& host) {
  if (!world_.on_gpu() || !host) return host;
  Tensor there = host;
  there.data = memory_.emplace_back(world_.team().gpu()->allocate(host.bytes())).get();
  copy(host, there);
  return there;
}

void Placed::copy(Tensor const& from, Tensor const& to) const {
  if (from.data != to.data && from.bytes() > 0) world_.team().gpu()->copy(to.data, from.data, from.bytes());
}

}  // namespace flux::bench
