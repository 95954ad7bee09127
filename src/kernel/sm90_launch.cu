#include <cuda_runtime.h>

#include <atomic>
#include <string>

#include "kernel/check.h"
#include "kernel/sm90.h"
#include "kernel/sm90_kernel.h"
#include "kernel/tensor_map.h"

namespace flux::sm90 {
namespace {

void require(bool ok, std::string const& message, ErrorKind kind = ErrorKind::kInvalid) {
  if (!ok) throw Error(kind, message);
}

bool aligned(void const* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

/// The kernel of a row; its shared memory is granted on every device it is asked for on.
void const* kernel_of(int config, DType dtype, WeightLayout layout) {
  static Kernels kernels[4];
  static bool const listed [[maybe_unused]] = [] {
    list_bf16(kernels[0]), list_bf16_in_out(kernels[1]), list_fp16(kernels[2]), list_fp16_in_out(kernels[3]);
    return true;
  }();
  require(config >= 0 && config < kConfigs, "row " + std::to_string(config) +
                                                " of the tile table was asked for; it has " + std::to_string(kConfigs) +
                                                " rows");
  require(dtype == DType::kBF16 || dtype == DType::kF16,
          "the GPU engines multiply bf16 and fp16, not " + std::string(name(dtype)));
  void const* const kernel = kernels[(dtype == DType::kF16) * 2 + (layout == WeightLayout::kInOut)][config];
  static std::atomic<uint64_t> granted[4][kConfigs];
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  auto& devices = granted[(dtype == DType::kF16) * 2 + (layout == WeightLayout::kInOut)][config];
  if (!(devices.load() >> device & 1)) {
    check_cuda(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kTable[config].shared_bytes(layout)),
        "shared memory for the Hopper kernel");
    devices.fetch_or(uint64_t{1} << device);
  }
  return kernel;
}

struct Attributes {
  cudaLaunchAttribute list[3];
  cudaLaunchConfig_t launch;
  Attributes(Config const& config, WeightLayout layout, int blocks, bool cooperative, bool beside_last,
             cudaStream_t stream) {
    list[0].id = cudaLaunchAttributeClusterDimension;
    list[0].val.clusterDim = {static_cast<unsigned>(config.cluster()), 1, 1};
    list[1].id = cudaLaunchAttributeCooperative;
    list[1].val.cooperative = cooperative;
    list[2].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    list[2].val.programmaticStreamSerializationAllowed = beside_last;
    launch = {dim3(blocks), dim3(config.threads()), static_cast<size_t>(config.shared_bytes(layout)), stream, list, 3};
  }
};

void check(Launch const& l, Config const& config) {
  std::string const sizes = "n=" + std::to_string(l.n()) + ", k=" + std::to_string(l.k());
  require(l.n() % 8 == 0 && l.k() % 8 == 0 && l.columns() % 8 == 0,
          sizes + ": on a GPU a rank's n and k are multiples of 8 elements (gated: n of 16); the nearest are n=" +
              std::to_string((l.n() + 8) / 16 * 16) + ", k=" + std::to_string((l.k() + 4) / 8 * 8),
          ErrorKind::kUnsupported);
  require(l.a_stride % 8 == 0 && l.c_stride % 8 == 0 && l.weight.stride % 8 == 0 && aligned(l.weight.data),
          "addresses and row pitches are multiples of 16 bytes on a GPU");
  require(!l.gated || config.gateable(l.layout),
          "tiles of " + std::to_string(config.block_n) + " columns cannot hold a gate and its up projection",
          ErrorKind::kUnsupported);
  Shards const slices = l.gate.slices();
  require(slices.total == l.k(), "the gate was made for another k than the weight's");
  require(slices.ranks == 1 || slices.unit % kBlockK == 0, "slices of k are multiples of 64 elements");
  require(l.order.block_m == config.tile_m() && l.order.tiles_n == tiles_n(config, l.n()),
          "the schedule was made for another tile than " + std::to_string(config.tile_m()) + " x " +
              std::to_string(config.tile_n()));
  require(l.store != StoreKind::kVector || l.route.kind != AnyRoute::Kind::kSum,
          "route=sum adds with bulk reductions, which store=vector has none of; take store=tensor or store=bulk, or "
          "another route",
          ErrorKind::kUnsupported);
  require(!l.residual || l.route.kind == AnyRoute::Kind::kKeep, "a residual is added where results stay");
  for (Tensor const& t : {l.bias, l.residual})
    require(!t || (t.dtype == l.weight.dtype && reinterpret_cast<uintptr_t>(t.data) % 4 == 0 && t.stride % 2 == 0),
            "bias and residual have the operands' dtype, even row pitches and addresses of multiples of 4 bytes");
}

Epilogue epilogue(Launch const& l) {
  Epilogue e;
  e.curved = l.activation != Activation::kNone;
  switch (l.activation) {
    case Activation::kNone: break;
    case Activation::kRelu: e.curve = {1e30f, 0, 0}; break;
    case Activation::kGelu: e.curve = {1.5950158f, 0.07401130f, -0.00070303f}; break;
    case Activation::kGeluTanh: e.curve = {1.5957691f, 0.07135482f, 0}; break;
    case Activation::kQuickGelu: e.curve = {1.702f, 0, 0}; break;
    case Activation::kSilu: e.curve = {1, 0, 0}; break;
  }
  e.gated = l.gated, e.bias = l.bias.data;
  e.residual = l.residual.data, e.residual_stride = l.residual.stride;
  return e;
}

/// Rows of A that one copy brings: no more than there are.
int rows_of_copy(Launch const& l, Config const& config) {
  int const part = (config.block_m / config.cluster_n + 7) / 8 * 8;
  int64_t rows = 0;
  for (int i = 0; i < l.order.runs; ++i) rows = std::max(rows, l.order.run[i].row + l.order.run[i].rows);
  return config.cluster_n > 1 ? part : static_cast<int>(std::min<int64_t>(part, (rows + 7) / 8 * 8));
}

/// Rows of A at each rank that the gate may point to.
void map_rows(Launch const& l, int rows_of_copy, CUtensorMap (&maps)[kMaxRanks]) {
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

CUtensorMap map_weight(Launch const& l, Config const& config) {
  int box_columns = kBlockK, box_rows;
  if (l.layout == WeightLayout::kInOut)
    box_rows = kBlockK / config.cluster_m;
  else
    box_rows = (config.block_n / (l.gated ? 2 : config.cluster_m) + 7) / 8 * 8;
  return tensor_map(
      {l.weight.data, l.weight.dtype, l.weight.columns, l.weight.rows, l.weight.stride, box_columns, box_rows, true});
}

/// Where tiles end at shard boundaries (Tiling::kWithin, as Remote has it), results that stay must not spill over them.
Shards within(Launch const& l) {
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
void* shard_of(Launch const& l, Shards const& within, int shard) {
  return static_cast<char*>(l.c.at(l.route.keep.rank)) + within.begin(shard) * l.c_stride * 2;
}

/// What lies at each rank that the route may point to: slots whose rows end where a band may end. Returns the rows from
/// slot to slot.
int64_t map_slots(Launch const& l, Config const& config, Shards const& within, CUtensorMap (&maps)[kMaxRanks]) {
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

}  // namespace

int tiles_n(Config const& config, int64_t n) { return static_cast<int>((n + config.tile_n() - 1) / config.tile_n()); }

int announcements(Config const& config, int64_t n) { return tiles_n(config, n) * config.cluster(); }

int resident_blocks(int row, DType dtype, WeightLayout layout) {
  static std::atomic<int> known[4][kConfigs][64];
  void const* const kernel = kernel_of(row, dtype, layout);
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  auto& cached = known[(dtype == DType::kF16) * 2 + (layout == WeightLayout::kInOut)][row][device];
  if (int const blocks = cached.load()) return blocks;
  Config const& config = kTable[row];
  Attributes attributes(config, layout, config.cluster(), false, false, nullptr);
  int clusters = 0;
  check_cuda(cudaOccupancyMaxActiveClusters(&clusters, kernel, &attributes.launch), "cudaOccupancyMaxActiveClusters");
  require(clusters > 0, "this GPU holds no block of the Hopper kernel", ErrorKind::kUnsupported);
  cached = clusters * config.cluster();
  return clusters * config.cluster();
}

void prepare(int row, DType dtype, WeightLayout layout) {
  cudaFuncAttributes attributes;
  check_cuda(cudaFuncGetAttributes(&attributes, kernel_of(row, dtype, layout)), "loading the Hopper kernel");
}

int blocks_of(Launch const& l) {
  int const cluster = kTable[l.config].cluster();
  int const most = l.blocks > 0 ? l.blocks : resident_blocks(l.config, l.weight.dtype, l.layout);
  return static_cast<int>(std::min<int64_t>(l.order.size(), most / cluster)) * cluster;
}

void launch(Launch const& l, CUstream_st* stream) {
  void const* const kernel = kernel_of(l.config, l.weight.dtype, l.layout);
  Config const& config = kTable[l.config];
  if (l.order.size() == 0) return;
  check(l, config);
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
  int const blocks = blocks_of(l);
  require(blocks > 0, "blocks=" + std::to_string(l.blocks) + " leaves no room for a cluster of " +
                          std::to_string(config.cluster()));
  Attributes attributes(config, l.layout, blocks, l.cooperative, l.rows_to_come, stream);
  void* arguments[] = {&operands, const_cast<Schedule*>(&l.order), const_cast<AnyGate*>(&l.gate),
                       const_cast<AnyRoute*>(&l.route)};
  check_cuda(cudaLaunchKernelExC(&attributes.launch, kernel, arguments), "launching the Hopper kernel");
}

}  // namespace flux::sm90
