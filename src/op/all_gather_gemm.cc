#include <cstring>

#include "engine/host/run.h"
#include "flux/op.h"
#include "op/channel.h"
#include "op/checks.h"
#include "op/recording.h"

namespace flux {
namespace {

ArrivalWords arrival_words(int64_t m, int64_t k, int ranks, Plan const& plan) {
  ArrivalWords words;
  words.shards = {m, ranks, 1};
  words.slices = {k, plan.transport == Transport::kRemote ? 1 : plan.k_slices, 8};
  int64_t const whole = std::max<int64_t>(words.shards.largest(), 1);
  words.comm_rows =
      plan.comm_rows == 0 || plan.transport == Transport::kRemote ? whole : std::min(plan.comm_rows, whole);
  return words;
}

// Behind the words of the rows stand those that say "my shard may be read", one a source.
int64_t word_count(AllGatherGemm::Shape const& shape, int ranks, Plan const& plan) {
  int64_t most = 0;
  // A small m has few rows a shard, but no fewer communication tiles than one.
  for (int64_t m : {shape.max_m, int64_t{1}}) most = std::max(most, arrival_words(m, shape.k, ranks, plan).size());
  return most + ranks;
}

}  // namespace

struct AllGatherGemm::State {
  State(World& world, Shape const& s, Plan const& p)
      : shape(s),
        plan(p),
        team(world.team()),
        channel(team, fmt::format("ag_gemm m<={} k={} {}", s.max_m, s.k, name(s.dtype)), word_count(s, team.size(), p),
                s.max_m * s.k * size_of(s.dtype), p),
        workers(p.workers) {}

  // The bytes of rows [row, row + rows), elements [first, first + count) of each, from one gather buffer to another.
  Transfer rows_between(std::byte const* from, std::byte* to, int64_t row, int64_t rows, int64_t first,
                        int64_t count) const {
    Transfer t;
    int64_t const size = size_of(shape.dtype), at = (row * shape.k + first) * size;
    t.from = from + at, t.to = to + at;
    t.row = row, t.rows = rows, t.row_bytes = count * size, t.from_stride = t.to_stride = shape.k * size;
    return t;
  }

  // Every copy of this rank, in the order in which its receivers want them.
  std::vector<Transfer> copies(Call const& call, ArrivalWords const& layout) const {
    int const rank = team.rank(), ranks = team.size();
    auto const buffer = channel.data(call);
    auto const words = channel.words(call);
    std::vector<Transfer> list;
    // One shard of rows from rank `from` to rank `to`; `after` gives the word of ours to wait for, if any.
    auto send = [&](int shard, int from, int to, int awaited_from, auto&& after) {
      for (int64_t tile = 0; tile * layout.comm_rows < layout.shards.size(shard); ++tile) {
        int64_t const first = tile * layout.comm_rows,
                      rows = std::min(layout.comm_rows, layout.shards.size(shard) - first);
        for (int s = 0; s < layout.slices.ranks; ++s) {
          Transfer t = rows_between(buffer.at(from), buffer.at(to), layout.shards.begin(shard) + first, rows,
                                    layout.slices.begin(s), layout.slices.size(s));
          t.after = after(tile, s), t.goal = call.digest, t.awaited = Awaited::kRows;
          t.awaited_from = awaited_from, t.peer = to == rank ? -1 : to;
          t.set = words.at(to) + layout.index(shard, tile, s);
          list.push_back(t);
        }
      }
    };
    for (int i = 1; i < ranks; ++i) {
      if (plan.path == Path::kRing) {  // what came from the left goes on to the right
        int const shard = (rank - i + 1 + ranks) % ranks;
        send(shard, rank, (rank + 1) % ranks, (rank - 1 + ranks) % ranks, [&](int64_t tile, int s) {
          return shard == rank ? nullptr : words.at(rank) + layout.index(shard, tile, s);
        });
      } else if (plan.transport == Transport::kPush) {
        send(rank, rank, (rank + i) % ranks, rank, [](int64_t, int) { return nullptr; });
      } else {
        int const source = (rank - i + ranks) % ranks;
        send(source, source, rank, source, [&](int64_t, int) { return words.at(rank) + layout.size() + source; });
      }
    }
    return list;
  }

  void run(int64_t m, Tensor const& x, std::span<Linear const> linears, Tensor const& gathered);
  void check_arguments(int64_t m, Tensor const& x, std::span<Linear const> linears, Tensor const& gathered) const;

  Shape shape;
  Plan plan;
  Team& team;
  Channel channel;
  host::Workers workers;
  Timeline* timeline = nullptr;
};

void AllGatherGemm::State::check_arguments(int64_t m, Tensor const& x, std::span<Linear const> linears,
                                           Tensor const& gathered) const {
  require(m >= 0 && m <= shape.max_m, "m is {}; this operator was made for 0 to {} rows", m, shape.max_m);
  require_matrix("x", x, shape.dtype, part_of_rows(m, team.rank(), team.size()).size, shape.k);
  require_optional("the gathered output", gathered, shape.dtype, m, shape.k);
  for (Linear const& l : linears) {
    bool const out_in = l.layout == WeightLayout::kOutIn;
    int64_t const n = out_in ? l.weight.rows : l.weight.columns;
    require_matrix("the weight", l.weight, shape.dtype, out_in ? n : shape.k, out_in ? shape.k : n);
    require_optional("the bias", l.bias, shape.dtype, 1, n);
    bool const halves = l.gated && !l.up;
    require(!halves || n % 2 == 0, "a gated weight has {} output columns; gate and up need an even number", n);
    require_matrix("the output", l.out, shape.dtype, m, halves ? n / 2 : n);
    require(l.gated || (!l.up && !l.up_bias), "a second weight is given, but the layer is not gated");
    require(!l.up_bias || l.up, "a second bias is given without a second weight");
    require(!l.up || !l.bias == !l.up_bias, "gate and up either both have a bias or neither");
    if (l.up) require_matrix("the second weight", l.up, shape.dtype, out_in ? n : shape.k, out_in ? shape.k : n);
    require_optional("the second bias", l.up_bias, shape.dtype, 1, n);
  }
}

void AllGatherGemm::State::run(int64_t m, Tensor const& x, std::span<Linear const> linears, Tensor const& gathered) {
  check_arguments(m, x, linears, gathered);
  int const rank = team.rank(), ranks = team.size();
  Recording recording(timeline, rank, plan.workers, SpanKind::kMaths);
  DrainAtEnd const drain(channel.copies());
  Call const call = channel.begin(fmt::format("m={}", m));
  ArrivalWords const layout = arrival_words(m, shape.k, ranks, plan);
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
  if (!in_place) channel.copies().enqueue(copies(call, layout), team.options().link, call.watch, recording.copies());

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
    Schedule const schedule = arrange(order, tiling, shards, plan.block_m, launch.tiles_n(), plan.band, rank);
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

AllGatherGemm::AllGatherGemm(World& world, Shape const& shape, Plan const& plan) {
  require_shape(shape.max_m, "k", shape.k, plan);
  require(plan.path == Path::kDirect || plan.transport == Transport::kPush,
          "transport={} goes with path=direct; a ring pushes", plan.transport == Transport::kPull ? "pull" : "remote");
  state_ = std::make_unique<State>(world, shape, plan);
}
AllGatherGemm::~AllGatherGemm() = default;

int64_t AllGatherGemm::shared_bytes(Shape const& shape, int ranks, Plan const& plan) {
  require_shape(shape.max_m, "k", shape.k, plan);
  return Channel::bytes(word_count(shape, ranks, plan), shape.max_m * shape.k * size_of(shape.dtype), plan);
}

void AllGatherGemm::run(int64_t m, Tensor const& x, std::span<Linear const> linears, Tensor const& gathered) {
  state_->run(m, x, linears, gathered);
}

void AllGatherGemm::record(Timeline* timeline) { state_->timeline = timeline; }

}  // namespace flux
