// AG+GEMM on the host engine.
#include <fmt/format.h>

#include <cstring>

#include "engine/host/run.h"
#include "op/channel.h"
#include "op/gather.h"
#include "op/operators.h"
#include "op/recording.h"
#include "tile/node_schedule.h"

namespace flux {
namespace {

class HostGather final : public GatherOperator {
 public:
  HostGather(Team& team, AllGatherGemm::Shape const& s, Plan const& p, std::shared_ptr<Buffers> shared)
      : GatherOperator(team, s),
        plan(with_pieces(on_host(p), s.max_m, team.nodes())),
        channel(team, fmt::format("ag_gemm m<={} k={} {}", s.max_m, s.k, name(s.dtype)), words_of(s, team.nodes(), p),
                s.max_m * s.k * size_of(s.dtype), p, std::move(shared)),
        workers(p.workers) {}

  void run(int64_t m, Tensor const& x, std::span<Linear const> linears, Tensor const& gathered, Stream) override;
  void record(Timeline* to) override { timeline = to; }

  // Behind the words of the rows stand those that say "my shard may be read", one a source.
  static int64_t words_of(AllGatherGemm::Shape const& s, Nodes const& nodes, Plan const& p) {
    return most_arrival_words(s.max_m, s.k, nodes.ranks, 8, with_pieces(p, s.max_m, nodes)) + nodes.ranks;
  }

 private:
  void enqueue(Gather const& gather, Call const& call, Recording& recording);
  Schedule schedule(ArrivalWords const& layout, Order order, Tiling tiling, int tiles_n) const;

  Plan plan;
  HostChannel channel;
  host::Workers workers;
  Timeline* timeline = nullptr;
};

void HostGather::enqueue(Gather const& gather, Call const& call, Recording& recording) {
  Nodes const& nodes = team.nodes();
  for (int peer : nodes.rail(team.rank())) {
    channel.rail()->receive(peer, received_along_rail(gather, peer), call.watch);
    channel.rail()->send(peer, sent_along_rail(gather, peer), call.watch, recording.rail(peer));
  }
  auto copy = [&](std::vector<Transfer> const& list) {
    channel.copies().enqueue(list, team.options().link, call.watch, recording.copies());
  };
  copy(nodes.count > 1 ? copies_in_node(gather, nodes) : copies(gather));
  copy(handed_on(gather, nodes));
}

Schedule HostGather::schedule(ArrivalWords const& layout, Order order, Tiling tiling, int tiles_n) const {
  int const rank = team.rank(), of_node = team.nodes().size();
  if (team.nodes().count == 1 || order == Order::kNaive)
    return arrange(order, tiling, layout.shards, plan.block_m, tiles_n, plan.band, rank);
  return arrange(turns_of_gather(layout.shards, of_node, layout.comm_rows, rank), true, layout.shards.total,
                 plan.block_m, tiles_n, plan.band);
}

void HostGather::run(int64_t m, Tensor const& x, std::span<Linear const> linears, Tensor const& gathered, Stream) {
  int const rank = team.rank(), ranks = team.size();
  Recording recording(timeline, rank, plan.workers, SpanKind::kMaths);
  DrainAtEnd const drain(channel);
  Call const call = channel.begin(fmt::format("m={}", m));
  ArrivalWords const layout = arrival_words(m, shape.k, ranks, 8, plan);
  auto const buffer = channel.data(call);
  auto const words = channel.words(call);

  // Our own rows lie in the buffer as everybody's do, so that a tile over several owners reads one block of memory.
  Shards const& shards = layout.shards;
  for (int64_t i = 0; i < x.rows && shape.k > 0; ++i)  // rows of nothing may have no address
    std::memcpy(buffer.at(rank) + (shards.begin(rank) + i) * shape.k * size_of(shape.dtype), x.row(i),
                shape.k * size_of(shape.dtype));
  bool const in_place = plan.transport == Transport::kRemote;
  bool const read_by_others = plan.transport != Transport::kPush;
  if (read_by_others)
    for (int p = 0; p < ranks; ++p)
      if (p != rank) store_release(words.at(p) + layout.size() + rank, call.digest);
  if (!in_place) {
    Gather gather{rank, layout, plan, call.digest, buffer};
    gather.element_bytes = size_of(shape.dtype), gather.row_bytes = gather.own_stride = shape.k * size_of(shape.dtype);
    gather.own = buffer.at(rank) + shards.begin(rank) * gather.row_bytes;
    gather.words = words, gather.readable = words.at(rank) + layout.size();
    enqueue(gather, call, recording);
  }

  Arrival const arrival{rank, layout, words.at(rank), call.digest, call.watch};
  Remote const remote{rank, shards, shape.k, words.at(rank) + layout.size(), call.digest, call.watch};
  auto wait_for_all = [&] {
    for (int source = 0; source < ranks; ++source) {
      Rows const rows{shards.begin(source), shards.size(source)};
      if (rows.count == 0) continue;
      bool ok = true;
      for (int s = 0; ok && s < layout.slices.ranks; ++s) ok = in_place ? remote.wait(rows, s) : arrival.wait(rows, s);
      if (!ok) team.check();
    }
  };
  if (!plan.fused) wait_for_all();

  for (Linear const& l : linears) {
    host::Launch launch;
    launch.a = buffer, launch.a_stride = shape.k;
    launch.set(l, rank);
    launch.block_m = plan.block_m, launch.block_n = plan.block_n;
    Order const order = plan.in_order && plan.fused ? Order::kArrival : Order::kNaive;
    Tiling const tiling = in_place ? Tiling::kWithin : Tiling::kAcross;
    Schedule const schedule = this->schedule(layout, order, tiling, launch.tiles_n());
    Keep const keep{rank, m};
    if (in_place) {
      // Rows are read at their owners: the place is relative to the shard.
      for (int p = 0; p < ranks; ++p)
        launch.a.base[p] = buffer.at(p) + shards.begin(p) * shape.k * size_of(shape.dtype);
      host::run_tiles(workers, launch, schedule, remote, keep, recording.stamps());
    } else if (plan.fused) {
      host::run_tiles(workers, launch, schedule, arrival, keep, recording.stamps());
    } else {
      host::run_tiles(workers, launch, schedule, Open{rank, shape.k}, keep, recording.stamps());
    }
  }
  wait_for_all();  // also what no tile of ours read: the words are cleared below
  if (gathered)
    for (int64_t i = 0; i < m; ++i) {
      int const owner = in_place ? shards.owner(i) : rank;
      std::memcpy(gathered.row(i), buffer.at(owner) + i * shape.k * size_of(shape.dtype),
                  shape.k * size_of(shape.dtype));
    }
  if (read_by_others)
    for (int p = 0; p < ranks; ++p)  // set by every peer, also one without rows: seen before they are cleared
      if (p != rank && !await(words.at(rank) + layout.size() + p, call.digest, call.watch, Awaited::kRows, p, 0))
        team.check();
  channel.finish(call);
  recording.close();
}

}  // namespace

std::unique_ptr<GatherOperator> host_ag_gemm(Team& team, AllGatherGemm::Shape const& shape, Plan const& plan,
                                             std::shared_ptr<Buffers> shared) {
  return std::make_unique<HostGather>(team, shape, plan, std::move(shared));
}

MemoryNeed host_ag_gemm_memory(Team& team, AllGatherGemm::Shape const& s, Plan const& plan) {
  return memory_need(HostGather::words_of(s, team.nodes(), plan), s.max_m * s.k * size_of(s.dtype), plan);
}

}  // namespace flux
