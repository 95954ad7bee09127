// AG+GEMM on GPUs: copies in a stream of their own bring the rows, the GEMM's gate waits for them tile by tile.
#include <fmt/format.h>

#include "kernel/gemm.h"
#include "op/checks.h"
#include "op/gather.h"
#include "op/gpu/channel.h"
#include "op/gpu/over_nccl.h"
#include "op/gpu/over_nodes.h"
#include "op/gpu/packets.h"
#include "op/gpu/recording.h"
#include "op/gpu/tiles.h"
#include "op/operators.h"
#include "tile/node_schedule.h"

namespace flux {
namespace {

constexpr int64_t kLeastRows = 64;  // of communication tiles that a call chooses: a tile's
constexpr int kSliceUnit = 64;      // the loader asks the gate once a slice of k, in whole k steps

class GpuGather final : public GatherOperator {
 public:
  GpuGather(Team& team, AllGatherGemm::Shape const& s, Plan const& p, std::shared_ptr<Buffers> shared)
      : GatherOperator(team, s),
        plan(p),
        channel(team, fmt::format("ag_gemm m<={} k={} {}", s.max_m, s.k, name(s.dtype)), words_of(s, team.size(), p),
                data_bytes(team, s), p, std::move(shared), extra(team, s, p)),
        packets(team, use(s), p, channel.buffers()) {
    require_k_on_gpu(s);
    if (channel.rail()) plan.k_slices = 1;  // rows travel whole
    require(p.path == Path::kDirect || p.transport == Transport::kPush,
            "path=ring on GPUs is a push to the right neighbour; use transport=push");
    require(!channel.through_host() || p.transport != Transport::kRemote,
            "transport=remote reads rows where they lie, and ranks meet in host memory here; use transport=push");
    if (channel.through_host())
      plan.transport = Transport::kPush;  // nor is there a pull: copies go there and from there
    // Refuses now what it would refuse in a call.
    blocks_to_copy(p, Carried::kRows, 0, p.path == Path::kRing, *team.gpu());
    prepare_tiles(plan, s.dtype, *team.gpu());
  }
  ~GpuGather() override { channel.drain(); }

  static GpuPackets::Use use(AllGatherGemm::Shape const& s) { return {Op::kAllGatherGemm, s.max_m, s.k, s.dtype}; }
  static int64_t words_of(AllGatherGemm::Shape const& s, int ranks, Plan const& p) {
    return most_arrival_words(s.max_m, s.k, ranks, kSliceUnit, smallest(p)) + ranks;
  }
  /// Of all rows; or, through host memory, of the box with this rank's own. Then all rows lie in scratch.
  static int64_t data_bytes(Team& team, AllGatherGemm::Shape const& s) {
    int64_t const rows = team.gpu()->through_host() ? Shards{s.max_m, team.size(), 1}.largest() : s.max_m;
    return rows * s.k * size_of(s.dtype);
  }
  static Buffers::Extra extra(Team& team, AllGatherGemm::Shape const& s, Plan const& p) {
    Buffers::Extra need = GpuPackets::need(team, use(s), p);
    if (team.gpu()->through_host()) need.scratch_bytes = s.max_m * s.k * size_of(s.dtype);
    return need;
  }
  void run(int64_t m, Tensor const& x, std::span<Linear const> linears, Tensor const& gathered, Stream stream) override;
  void record(Timeline* to) override {
    recording = to ? std::make_unique<GpuRecording>(*to, team, SpanKind::kMaths) : nullptr;
  }

 private:
  struct Way;  // of one call
  /// Of the communication tiles that a call may choose.
  static Plan smallest(Plan p) {
    if (p.comm_rows == 0) p.comm_rows = kLeastRows;
    p.k_slices = std::max(p.k_slices, kSlicesOfOneTile);
    return p;
  }
  void by_packets(int64_t m, Tensor const& x, std::span<Linear const> linears, Tensor const& gathered, Stream stream);
  std::vector<Transfer> others(Gather const& gather, Way const& way) const;
  GemmLaunch arranged(Linear const& linear, Tiles const& tiles, Way const& way) const;
  GemmLaunch launch_of(Linear const& linear, Tiles const& tiles, Way const& way, Tensor const& x) const;

  Plan plan;
  GpuChannel channel;
  GpuPackets packets;
  std::unique_ptr<GpuRecording> recording;
};

struct GpuGather::Way {
  int64_t m;
  int rank;
  ArrivalWords layout;
  Symmetric<std::byte> buffer = {};
  Symmetric<Word> words = {};
  Call call = {};
  bool in_place = false;   // rows are read at their owners
  bool own_apart = false;  // our own rows are read from x
  int copying = 0;         // blocks that carry rows; 0: the copy engine does
  int beside = 0;          // blocks beside a GEMM that is fused
  Word* readable() const { return words.at(rank) + layout.size(); }
};

/// Which tiles in which order: all that is known before the call begins.
GemmLaunch GpuGather::arranged(Linear const& linear, Tiles const& tiles, Way const& way) const {
  GemmLaunch l;
  l.tile = tiles.tile, l.processors = gemm_processors(plan, *team.gpu(), way.beside), l.apart = !team.gpu()->whole();
  l.weight = linear.weight, l.layout = linear.layout;
  Shards const& shards = way.layout.shards;
  int const tile_m = tiles.tile.tile_m, tiles_n = tiles.tile.tiles_n(l.n());
  int const band = way.in_place ? tiles.band : tiles.band_within(way.layout.comm_rows);
  bool const in_order = plan.in_order && plan.fused;
  if (channel.rail() && in_order)
    l.order = arrange(turns_of_gather(shards, team.nodes().size(), way.layout.comm_rows, way.rank), true, shards.total,
                      tile_m, tiles_n, band);
  else
    l.order = arrange(in_order ? Order::kArrival : Order::kNaive, way.in_place ? Tiling::kWithin : Tiling::kAcross,
                      shards, tile_m, tiles_n, band, way.rank);
  Arrival arrival;
  arrival.layout = way.layout;
  l.gate = arrival;
  return l;
}

GemmLaunch GpuGather::launch_of(Linear const& linear, Tiles const& tiles, Way const& way, Tensor const& x) const {
  Shards const& shards = way.layout.shards;
  GemmLaunch l = arranged(linear, tiles, way);
  l.bias = linear.bias, l.scales = linear.scales;
  l.activation = linear.activation, l.gated = linear.gated;
  l.a_stride = shape.k, l.c_stride = packed(linear.out).stride, l.store = plan.store;
  for (int p = 0; p < team.size(); ++p)
    l.a.base[p] = way.buffer.at(p) + (way.in_place ? shards.begin(p) * shape.k * size_of(shape.dtype) : 0);
  l.c.base[way.rank] = linear.out.data;
  l.route = Keep{way.rank, way.m};
  if (way.in_place) {
    l.gate = Remote{way.rank, shards, shape.k, way.readable(), way.call.digest, way.call.watch};
  } else {  // also where all rows have come: a call that failed shows in the output
    Arrival arrival{way.rank, way.layout, way.words.at(way.rank), way.call.digest, way.call.watch};
    if (way.own_apart) arrival.own = (way.rank + 1) % kMaxRanks, l.a.base[arrival.own] = x.data;
    l.gate = arrival;
  }
  return l;
}

/// In a mirror: what the others do. By push they bring their rows; otherwise they say that theirs may be read, and read
/// ours.
std::vector<Transfer> GpuGather::others(Gather const& gather, Way const& way) const {
  if (plan.transport == Transport::kPush) return pushes_of_others(gather);
  std::vector<Transfer> list;
  for (int p = 0; p < team.size(); ++p) {
    Transfer told;
    told.set = way.readable() + p, told.goal = way.call.digest;
    if (p != way.rank) list.push_back(told);
  }
  Gather pushed = gather;  // reading ours is our push by another hand; its words land where nobody looks
  pushed.plan.transport = Transport::kPush;
  pushed.own = way.buffer.at(way.rank) + way.layout.shards.begin(way.rank) * gather.row_bytes;
  pushed.own_stride = gather.row_bytes;
  for (Transfer const& t : copies(pushed)) list.push_back(t);
  return list;
}

// The rows are gathered first, by a kernel beside which the first GEMM begins: its weights are on their way meanwhile.
void GpuGather::by_packets(int64_t m, Tensor const& x, std::span<Linear const> linears, Tensor const& gathered,
                           Stream stream) {
  Tensor const rows = gathered ? packed(gathered) : packets.rows(m);
  std::vector<GemmLaunch> gemms;
  for (Linear const& l : linears) {
    int64_t const n = l.layout == WeightLayout::kOutIn ? l.weight.rows : l.weight.columns;
    gemms.push_back(packets.gemm(packets.tiles(m, n, shape.k, l.layout, l.gated, shape.dtype), rows, l));
    // On a shared GPU such a GEMM could hold the processors that another rank's exchange needs.
    gemms.back().rows_to_come = gemms.size() == 1 && !recording && !team.gpu()->shared();
    if (recording) recording->reserve(gemms.back());
  }
  if (recording) recording->begin(channel, stream);
  Call const call = channel.enter(fmt::format("m={}", m), stream);
  if (recording) recording->begin_part(SpanKind::kCopy, stream);
  packets.exchange(call, m, x, rows, {}, stream);
  if (recording) recording->end_part(stream);
  for (GemmLaunch& gemm : gemms) {
    if (size_of(shape.dtype) == 1) {  // no NaN says that rows did not come: the GEMM asks whether the world has ended
      gemm.a.base[0] = rows.data;
      gemm.gate = Arrival{0, arrival_words(m, shape.k, 1, kSliceUnit, {}), nullptr, call.digest, call.watch};
    }
    if (recording) gemm.stamps = recording->stamps(gemm);
    enqueue_gemm(gemm, stream);
  }
  channel.leave(stream);
  if (recording) recording->close(channel, stream);
}

/// Whether no tile of this height holds rows of ours and of others.
bool apart(Shards const& shards, int rank, int tile_m) {
  int64_t const begin = shards.begin(rank), end = shards.begin(rank + 1);
  return begin % tile_m == 0 && (end % tile_m == 0 || end == shards.total);
}

void GpuGather::run(int64_t m, Tensor const& x, std::span<Linear const> linears, Tensor const& gathered,
                    Stream stream) {
  require_on_gpu("x", x), require_on_gpu("the gathered output", gathered);
  for (Linear const& l : linears) require_on_gpu(l);
  if (packets.shots(m) != PacketShots::kNone) return by_packets(m, x, linears, gathered, stream);
  Plan now = plan;
  now.comm_rows =
      rows_at_once(plan, Carried::kRows, m, team.size(), shape.k * size_of(shape.dtype), team.gpu()->across_pcie());
  if (channel.rail()) now.comm_rows = std::min(now.comm_rows, with_pieces(plan, m, team.nodes()).comm_rows);
  bool const in_pieces = plan.fused && team.gpu()->across_pcie();
  TiledRows const to_tile = rows_to_tile(m, now.comm_rows, in_pieces);
  std::vector<Tiles> tiles;  // of each weight
  int tallest = 0;
  int64_t const piece_bytes = now.comm_rows * shape.k * size_of(shape.dtype);
  int copying = 0;
  if (plan.transport != Transport::kRemote)
    copying = blocks_to_copy(plan, Carried::kRows, piece_bytes, plan.path == Path::kRing, *team.gpu());
  int const beside = plan.fused ? blocks_beside(copying, *team.gpu()) : 0;
  for (Linear const& l : linears) {
    bool const out_in = l.layout == WeightLayout::kOutIn;
    int64_t const n = out_in ? l.weight.rows : l.weight.columns;
    tiles.push_back(
        choose_tiles(plan, to_tile, n, shape.k, l.layout, l.gated, shape.dtype, gemm_chip(plan, *team.gpu(), beside)));
    tallest = std::max(tallest, tiles.back().tile.tile_m);
  }
  now.k_slices = slices_of_k(plan, copying, piece_bytes, m, tallest);
  if (plan.comm_rows == 0)
    now.comm_rows = tiles.empty() ? std::max(now.comm_rows, kLeastRows) : tiles[0].rounded(now.comm_rows);
  Way way{m, team.rank(), arrival_words(m, shape.k, team.size(), kSliceUnit, now)};
  way.in_place = plan.transport == Transport::kRemote, way.copying = copying, way.beside = beside;
  if (recording) {
    for (size_t i = 0; i < linears.size(); ++i) recording->reserve(arranged(linears[i], tiles[i], way));
    recording->begin(channel, stream);
  }
  way.call = channel.begin(fmt::format("m={} rows={}", m, way.layout.comm_rows), stream);
  way.buffer = channel.data(way.call), way.words = channel.words(way.call);
  Symmetric<std::byte> const boxes = way.buffer;
  Word* const filled = way.words.at(way.rank);
  if (channel.through_host())
    way.buffer.base[way.rank] = channel.buffers().scratch().get(), way.words.base[way.rank] = channel.fetched();
  int const rank = way.rank, ranks = team.size();
  Shards const& shards = way.layout.shards;
  CallWords const call_words = channel.words_of(way.call);
  bool const pushes = plan.transport == Transport::kPush;
  // Tiles read our own rows from x, unless others read them too or a tile would need them beside other rows. All tiles
  // of one height divide those of a lower one.
  way.own_apart = tallest > 0 && pushes && plan.fused && !gathered && packed(x).stride == shape.k && x.rows > 0 &&
                  apart(shards, rank, tallest);
  Inputs inputs;
  if (!pushes) inputs.readable = way.readable();
  if (!way.in_place) inputs.arrival = {rank, way.layout, way.words.at(rank), way.call.digest, way.call.watch};

  Gather gather{rank, way.layout, now, way.call.digest, way.buffer};
  gather.element_bytes = size_of(shape.dtype), gather.row_bytes = shape.k * gather.element_bytes;
  gather.own = static_cast<std::byte const*>(x.data), gather.own_stride = packed(x).stride * gather.element_bytes;
  gather.words = way.words, gather.boxes = boxes, gather.filled = filled;

  if (!way.own_apart) {
    Transfer own;
    own.from = gather.own, own.to = way.buffer.at(rank) + shards.begin(rank) * gather.row_bytes;
    own.rows = x.rows, own.row_bytes = own.to_stride = gather.row_bytes, own.from_stride = gather.own_stride;
    enqueue(own, stream);
    if (channel.rail()) gather.own = own.to, gather.own_stride = own.to_stride;
  }
  if (!pushes) {
    Symmetric<Word> readable;
    for (int p = 0; p < ranks; ++p) readable.base[p] = way.words.at(p) + way.layout.size();
    enqueue_readable(call_words, readable, stream);
  }
  std::vector<Transfer> theirs;
  if (channel.mirrored()) theirs = others(gather, way);
  if (way.copying == 0 || !pushes) channel.replay(theirs), theirs.clear();
  // A pull's copies wait in a kernel that ends before the GEMM begins: a wait in their own stream would block every
  // other stream where CUDA_DEVICE_MAX_CONNECTIONS is 1.
  if (plan.transport == Transport::kPull) enqueue_wait(call_words, {{}, way.readable()}, stream);
  if (!way.in_place) channel.copies().fork(stream);
  if (channel.rail()) channel.rail()->fork(stream);
  auto const send = [&] {
    if (way.in_place) return;
    if (channel.rail())
      gather_over_nodes(channel, gather, way.call.watch, way.copying, shape.dtype);
    else if (channel.through_host())
      channel.copies().enqueue(to_box(gather)), channel.fetch(from_boxes(gather));
    else if (way.copying == 0)
      channel.copies().enqueue(copies(gather));
    else
      channel.copy_by_blocks(copies(gather), theirs, way.copying, shape.dtype, way.call.watch);
  };
  // The GEMM comes before the copies it waits for: so it does not wait for the host to enqueue them, and a graph does
  // not put it behind them in their queue. Not before blocks that copy, which would wait for the host then.
  bool const late = plan.fused && way.copying == 0;
  if (!late) send();
  if (!plan.fused) enqueue_wait(call_words, inputs, stream);
  for (size_t i = 0; i < linears.size(); ++i) {
    GemmLaunch launch = launch_of(linears[i], tiles[i], way, x);
    if (recording) launch.stamps = recording->stamps(launch);
    enqueue_gemm(launch, stream);
  }
  if (late) send();
  if (gathered) {
    enqueue_wait(call_words, inputs, stream);
    for (int p = 0; p < ranks; ++p) {
      Transfer t;
      t.rows = shards.size(p), t.row_bytes = t.from_stride = gather.row_bytes;
      t.from = way.buffer.at(way.in_place ? p : rank) + shards.begin(p) * gather.row_bytes;
      t.to = static_cast<std::byte*>(gathered.row(shards.begin(p))),
      t.to_stride = packed(gathered).stride * gather.element_bytes;
      enqueue(t, stream);
    }
  }
  if (!way.in_place) channel.copies().join(stream);
  if (channel.rail()) channel.rail()->join(stream);
  channel.finish(way.call, inputs, stream);
  if (recording) recording->close(channel, stream);
}

}  // namespace

std::unique_ptr<GatherOperator> gpu_ag_gemm(Team& team, AllGatherGemm::Shape const& shape, Plan const& plan,
                                            std::shared_ptr<Buffers> shared) {
  if (team.gpu()->nccl()) return nccl_ag_gemm(team, shape, plan);
  return std::make_unique<GpuGather>(team, shape, plan, std::move(shared));
}

MemoryNeed gpu_ag_gemm_memory(Team& team, AllGatherGemm::Shape const& s, Plan const& plan) {
  if (team.gpu()->nccl()) return nccl_ag_gemm_memory(s);
  int64_t const words = GpuGather::words_of(s, team.size(), plan);
  return memory_need(words, GpuGather::data_bytes(team, s), plan, GpuGather::extra(team, s, plan),
                     GpuChannel::own_bytes(team, words));
}

}  // namespace flux
