#include "bench/plain_gemm.h"

namespace flux::bench {

PlainGemm PlainGemm::whole(int64_t m, int64_t columns) {
  Plan plan;
  plan.block_m = static_cast<int>(std::max<int64_t>(m, 1)),
  plan.block_n = static_cast<int>(std::max<int64_t>(columns, 1));
  return PlainGemm(plan);
}

void PlainGemm::run(Tensor const& x, Linear const& linear) {
  host::Launch launch;
  launch.a.base[0] = static_cast<std::byte*>(x.data), launch.a_stride = x.stride;
  launch.set(linear, 0);
  launch.block_m = plan_.block_m, launch.block_n = plan_.block_n;
  Schedule const order =
      arrange(Order::kNaive, Tiling::kAcross, {x.rows, 1, 1}, plan_.block_m, launch.tiles_n(), plan_.band, 0);
  host::run_tiles(workers_, launch, order, Open{0, x.columns}, Keep{0, x.rows}, nullptr);
}

GatherAlone::GatherAlone(World& world, int64_t m, int64_t columns, DType dtype, Plan const& plan)
    : m_(m), op_(world, {m, columns, dtype}, plan) {
  int64_t const rows = part_of_rows(m, world.rank(), world.size()).size;
  shard_.resize(rows * columns * size_of(dtype));
  x_ = matrix(shard_.data(), dtype, rows, columns);
}

void GatherAlone::run() { op_.run(m_, x_, std::span<Linear const>()); }

int64_t GatherAlone::sent_bytes(int64_t m, int64_t columns, DType dtype, int ranks) {
  return (ranks - 1) * Shards{m, ranks, 1}.largest() * columns * size_of(dtype);
}

}  // namespace flux::bench
