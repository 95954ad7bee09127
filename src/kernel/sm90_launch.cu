#include <cuda_runtime.h>

#include <string>

#include "engine/sm90/config.h"
#include "engine/sm90/operands.h"
#include "kernel/gemm_kernel.h"
#include "kernel/tensor_map.h"

namespace flux::sm90 {
namespace {

/// Rows of A that one copy brings: no more than there are.
int rows_of_copy(GemmLaunch const& l, Config const& config) {
  int const part = (config.block_m / config.cluster_n + 7) / 8 * 8;
  int64_t rows = 0;
  for (int i = 0; i < l.order.runs; ++i) rows = std::max(rows, l.order.run[i].row + l.order.run[i].rows);
  return config.cluster_n > 1 ? part : static_cast<int>(std::min<int64_t>(part, (rows + 7) / 8 * 8));
}

/// Rows of A at each rank that the gate may point to.
void map_rows(GemmLaunch const& l, int rows_of_copy, CUtensorMap (&maps)[kMaxRanks]) {
  auto add = [&](int rank, int64_t rows) {
    if (rows == 0) return;
    require(l.a.at(rank) && aligned(l.a.at(rank)), "rows of A are missing or not at a multiple of 16 bytes");
    maps[rank] = tensor_map({l.a.at(rank), l.weight.dtype, l.k(), rows, l.a_stride, kBlockK, rows_of_copy, true});
  };
  if (l.gate.kind == AnyGate::Kind::kRemote) {
    for (int rank = 0; rank < l.gate.remote.shards.ranks; ++rank) add(rank, l.gate.remote.shards.size(rank));
  } else {
    int64_t rows = 0;
    for (int i = 0; i < l.order.runs; ++i) rows = std::max(rows, l.order.run[i].row + l.order.run[i].rows);
    add(l.gate.kind == AnyGate::Kind::kOpen ? l.gate.open.rank : l.gate.arrival.rank, rows);
    Arrival const& arrival = l.gate.arrival;
    if (l.gate.kind == AnyGate::Kind::kArrival && arrival.own >= 0)
      add(arrival.own, arrival.layout.shards.size(arrival.rank));
  }
}

CUtensorMap map_weight(GemmLaunch const& l, Config const& config) {
  int box_columns = kBlockK, box_rows;
  if (l.layout == WeightLayout::kInOut)
    box_rows = kBlockK / config.cluster_m;
  else
    box_rows = (config.block_n / (l.gated ? 2 : config.cluster_m) + 7) / 8 * 8;
  return tensor_map(
      {l.weight.data, l.weight.dtype, l.weight.columns, l.weight.rows, l.weight.stride, box_columns, box_rows, true});
}

/// Where tiles end at shard boundaries (Tiling::kWithin, as Remote has it), results that stay must not spill over them.
Shards within(GemmLaunch const& l) {
  bool const keeps = l.route.kind == AnyRoute::Kind::kKeep, remote = l.gate.kind == AnyGate::Kind::kRemote;
  int64_t const end = l.route.shards().total;
  for (int i = 0; i < l.order.runs; ++i) {
    Schedule::Run const& run = l.order.run[i];
    bool const open_ended = run.rows % l.order.block_m != 0 && run.row + run.rows != end;
    require(!open_ended || (keeps && remote) || l.route.kind == AnyRoute::Kind::kPush ||
                l.route.kind == AnyRoute::Kind::kSum,
            "tiles within shards (Tiling::kWithin) go with Remote and Keep, Push or Sum", ErrorKind::kUnsupported);
  }
  return keeps && remote ? l.gate.remote.shards : Shards{};
}

/// Where the results of a shard of rows begin, where they stay.
void* shard_of(GemmLaunch const& l, Shards const& within, int shard) {
  return static_cast<char*>(l.c.at(l.route.keep.rank)) + within.begin(shard) * l.c_stride * 2;
}

/// What lies at each rank that the route may point to: slots whose rows end where a band may end. Returns the rows from
/// slot to slot.
int64_t map_slots(GemmLaunch const& l, Config const& config, Shards const& within, CUtensorMap (&maps)[kMaxRanks]) {
  auto add_at = [&](int map, void* data, int64_t rows, int64_t slots, int64_t slot_rows) {
    if (rows == 0) return;
    require(data && aligned(data), "memory for C is missing or not at a multiple of 16 bytes");
    maps[map] = tensor_map({data, l.weight.dtype, l.columns(), rows, l.c_stride, config.chunk_n, 64,
                            config.chunk_n == 64, slots, slot_rows * l.c_stride});
  };
  auto add = [&](int rank, int64_t rows, int64_t slots, int64_t slot_rows) {
    add_at(rank, l.c.at(rank), rows, slots, slot_rows);
  };
  constexpr int64_t kOneSlot = int64_t{1} << 31;  // more rows than there are: all rows are of slot 0
  using Kind = AnyRoute::Kind;
  AnyRoute const& route = l.route;
  Shards const shards = route.shards();
  switch (route.kind) {
    case Kind::kKeep:
      if (within.ranks > 1)
        for (int shard = 0; shard < within.ranks; ++shard)
          add_at(shard, shard_of(l, within, shard), within.size(shard), 1, within.size(shard));
      else
        add(route.keep.rank, shards.total, 1, shards.total);
      return kOneSlot;
    case Kind::kStage: add(route.stage.rank, shards.total, 1, shards.total); return kOneSlot;
    case Kind::kSum:
      for (int rank = 0; rank < shards.ranks; ++rank) add(rank, shards.size(rank), 1, shards.size(rank));
      return kOneSlot;
    case Kind::kPush:
      for (int rank = 0; rank < shards.ranks; ++rank) add(rank, shards.size(rank), shards.ranks, route.push.slot_rows);
      return route.push.slot_rows;
    case Kind::kBroadcast:
      for (int rank = 0; rank < route.broadcast.ranks; ++rank)
        add(rank, shards.total, route.broadcast.ranks, shards.total);
      return shards.total;
  }
  return kOneSlot;
}

void with_operands(GemmLaunch const& l, std::function<void(void*)> const& use) {
  Config const& config = kTable[l.tile.row];
  require(!l.gated || config.gateable(l.layout),
          "tiles of " + std::to_string(config.block_n) + " columns cannot hold a gate and its up projection",
          ErrorKind::kUnsupported);
  Operands operands{};
  operands.a_rows = rows_of_copy(l, config);
  if (l.k() > 0) map_rows(l, operands.a_rows, operands.a), operands.b = map_weight(l, config);
  operands.within = within(l);
  operands.slot_rows = map_slots(l, config, operands.within, operands.c);
  operands.c_rows = l.c, operands.c_stride = l.c_stride, operands.store = l.store;
  for (int shard = 0; operands.within.ranks > 1 && shard < operands.within.ranks; ++shard)
    operands.c_rows.base[shard] = shard_of(l, operands.within, shard);
  operands.columns = static_cast<int>(l.columns());
  operands.up = static_cast<int>(l.columns());
  operands.epilogue = epilogue(l);
  operands.rows_to_come = l.rows_to_come, operands.stamps = l.stamps;
  use(&operands);
}

}  // namespace

GemmKernel gemm_kernel(int row, DType dtype, WeightLayout layout) {
  return {instance<Kernels>(row, dtype, layout), kTable[row].threads(), kTable[row].shared_bytes(layout), 1,
          with_operands};
}

}  // namespace flux::sm90
