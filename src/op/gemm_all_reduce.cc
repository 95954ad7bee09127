#include <cstring>

#include "engine/host/sum.h"
#include "op/checks.h"
#include "op/partial_sums.h"

namespace flux {
namespace {

// One-shot sums everywhere. Two-shot sums at the owner; unfused it is the plain reduce-scatter and all-gather.
PartialSums::Way way_of(Plan const& plan) {
  return plan.shots == Shots::kOneShot && plan.fused ? PartialSums::Way::kBroadcast : PartialSums::way_of(plan);
}

}  // namespace

struct GemmAllReduce::State {
  State(World& world, Shape const& s, Plan const& p)
      : shape(s),
        plan(p),
        team(world.team()),
        way(way_of(p)),
        result_words(PartialSums::words(s.max_m, team.size(), p, way)),
        result_bytes(PartialSums::data_bytes(s.max_m, s.n, s.dtype, team.size(), p, way)),
        channel(team, fmt::format("gemm_ar m<={} n={} {}", s.max_m, s.n, name(s.dtype)), 2 * result_words,
                result_bytes + s.max_m * s.n * size_of(s.dtype), p),
        partials(team, s.max_m, s.n, s.dtype, p, way) {}

  void two_shot(Call const& call, int64_t m, Tensor const& out, SumEpilogue const& epilogue, Recording& recording);

  Shape shape;
  Plan plan;
  Team& team;
  PartialSums::Way way;
  int64_t result_words, result_bytes;  // where the summed rows begin, behind the partials
  Channel channel;
  PartialSums partials;
  Timeline* timeline = nullptr;
};

GemmAllReduce::GemmAllReduce(World& world, Shape const& shape, Plan const& plan) {
  require_shape(shape.max_m, "n", shape.n, plan);
  state_ = std::make_unique<State>(world, shape, plan);
}
GemmAllReduce::~GemmAllReduce() = default;

int64_t GemmAllReduce::shared_bytes(Shape const& shape, int ranks, Plan const& plan) {
  require_shape(shape.max_m, "n", shape.n, plan);
  auto const way = way_of(plan);
  return Channel::bytes(2 * PartialSums::words(shape.max_m, ranks, plan, way),
                        PartialSums::data_bytes(shape.max_m, shape.n, shape.dtype, ranks, plan, way) +
                            shape.max_m * shape.n * size_of(shape.dtype),
                        plan);
}

// The owner's sums go to everybody band by band; each rank finishes its copy of a row when it has come.
void GemmAllReduce::State::two_shot(Call const& call, int64_t m, Tensor const& out, SumEpilogue const& epilogue,
                                    Recording& recording) {
  int const rank = team.rank(), ranks = team.size();
  Shards const shards = partials.shards();
  int64_t const row_bytes = shape.n * size_of(shape.dtype);
  // A word for each (owner, worker's share of its bands): bands as in the partials.
  BandWords const bands{shards, plan.block_m, way == PartialSums::Way::kRing ? Tiling::kWithin : Tiling::kAcross};
  auto const words = channel.words(call);
  auto const data = channel.data(call);
  auto result = [&](int at) { return matrix(data.at(at) + result_bytes, shape.dtype, m, shape.n); };
  auto word = [&](int at, int owner, int band) { return words.at(at) + result_words + bands.index(owner, band); };

  SumEpilogue at_owner;
  at_owner.bias = epilogue.bias;
  Tensor summed = result(rank);
  summed.data = summed.row(shards.begin(rank)), summed.rows = shards.size(rank);
  if (epilogue.residual) {
    at_owner.residual = epilogue.residual;
    at_owner.residual.data = epilogue.residual.row(shards.begin(rank));
  }
  partials.sum(channel, call, recording, [&](int, std::span<Tensor const> slots, Place band) {
    host::sum_rows(slots, band.row, band.rows, summed, at_owner);
    std::vector<Transfer> sends;
    for (int i = 1; i < ranks; ++i) {
      int const to = (rank + i) % ranks;
      Transfer t;
      t.peer = to, t.goal = call.digest, t.row = shards.begin(rank) + band.row, t.rows = band.rows;
      t.row_bytes = t.to_stride = t.from_stride = row_bytes;
      t.from = static_cast<std::byte*>(result(rank).row(t.row)), t.to = static_cast<std::byte*>(result(to).row(t.row));
      t.set = word(to, rank, bands.index(band));
      sends.push_back(t);
    }
    channel.copies().enqueue(std::move(sends), team.options().link, call.watch, recording.copies());
  });

  SumEpilogue here;
  here.norm_weight = epilogue.norm_weight, here.normed = epilogue.normed, here.norm_epsilon = epilogue.norm_epsilon;
  Tensor const all = result(rank);
  for (int i = 0; i < ranks && shape.n > 0; ++i) {
    int const owner = (rank - i + ranks) % ranks;
    for (int b = 0; b < bands.count(owner); ++b) {
      Place const band = bands.place(owner, b);
      int64_t const row = shards.begin(owner) + band.row;
      if (owner != rank && !await(word(rank, owner, b), call.digest, call.watch, Awaited::kResult, owner, row))
        team.check();
      host::sum_rows(std::span(&all, 1), row, band.rows, out, here);
    }
  }
}

void GemmAllReduce::run(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
                        SumEpilogue const& epilogue) {
  State& s = *state_;
  require_row_parallel(m, s.shape.max_m, s.shape.n, s.shape.dtype, x, weight, layout);
  require_summed(m, s.shape.n, s.shape.dtype, out, epilogue);
  Recording recording(s.timeline, s.team.rank(), s.plan.workers, SpanKind::kSum);
  DrainAtEnd const drain(s.channel.copies());
  Call const call = s.channel.begin(fmt::format("m={}", m));
  s.partials.multiply(s.channel, call, m, x, weight, layout, recording);
  if (s.way == PartialSums::Way::kBroadcast) {
    s.partials.sum(s.channel, call, recording, [&](int, std::span<Tensor const> slots, Place band) {
      host::sum_rows(slots, band.row, band.rows, out, epilogue);
    });
  } else {
    s.two_shot(call, m, out, epilogue, recording);
  }
  s.channel.finish(call);
  recording.close();
}

void GemmAllReduce::record(Timeline* timeline) { state_->timeline = timeline; }

}  // namespace flux
