#include "engine/host/sum.h"
#include "op/checks.h"
#include "op/partial_sums.h"

namespace flux {

struct GemmReduceScatter::State {
  State(World& world, Shape const& s, Plan const& p)
      : shape(s),
        plan(p),
        team(world.team()),
        way(PartialSums::way_of(p)),
        channel(team, fmt::format("gemm_rs m<={} n={} {}", s.max_m, s.n, name(s.dtype)),
                PartialSums::words(s.max_m, team.size(), p, way),
                PartialSums::data_bytes(s.max_m, s.n, s.dtype, team.size(), p, way), p),
        partials(team, s.max_m, s.n, s.dtype, p, way) {}

  Shape shape;
  Plan plan;
  Team& team;
  PartialSums::Way way;
  Channel channel;
  PartialSums partials;
  Timeline* timeline = nullptr;
};

GemmReduceScatter::GemmReduceScatter(World& world, Shape const& shape, Plan const& plan) {
  require_shape(shape.max_m, "n", shape.n, plan);
  state_ = std::make_unique<State>(world, shape, plan);
}
GemmReduceScatter::~GemmReduceScatter() = default;

int64_t GemmReduceScatter::shared_bytes(Shape const& shape, int ranks, Plan const& plan) {
  require_shape(shape.max_m, "n", shape.n, plan);
  auto const way = PartialSums::way_of(plan);
  return Channel::bytes(PartialSums::words(shape.max_m, ranks, plan, way),
                        PartialSums::data_bytes(shape.max_m, shape.n, shape.dtype, ranks, plan, way), plan);
}

void GemmReduceScatter::run(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
                            SumEpilogue const& epilogue) {
  State& s = *state_;
  require_row_parallel(m, s.shape.max_m, s.shape.n, s.shape.dtype, x, weight, layout);
  require_summed(part_of_rows(m, s.team.rank(), s.team.size()).size, s.shape.n, s.shape.dtype, out, epilogue);
  Recording recording(s.timeline, s.team.rank(), s.plan.workers, SpanKind::kSum);
  DrainAtEnd const drain(s.channel.copies());
  Call const call = s.channel.begin(fmt::format("m={}", m));
  s.partials.multiply(s.channel, call, m, x, weight, layout, recording);
  s.partials.sum(s.channel, call, recording, [&](int, std::span<Tensor const> slots, Place band) {
    host::sum_rows(slots, band.row, band.rows, out, epilogue);
  });
  s.channel.finish(call);
  recording.close();
}

void GemmReduceScatter::record(Timeline* timeline) { state_->timeline = timeline; }

}  // namespace flux
