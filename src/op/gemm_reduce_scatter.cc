// GEMM+RS on the host engine.
#include <fmt/format.h>

#include "engine/host/sum.h"
#include "op/operators.h"
#include "op/partial_sums.h"

namespace flux {
namespace {

class HostReduceScatter final : public SumOperator {
 public:
  HostReduceScatter(Team& team, GemmReduceScatter::Shape const& s, Plan const& p)
      : SumOperator(team, s),
        plan(on_host(p)),
        way(PartialSums::way_of(p)),
        channel(team, fmt::format("gemm_rs m<={} n={} {}", s.max_m, s.n, name(s.dtype)),
                PartialSums::words(s.max_m, team.size(), p, way),
                PartialSums::data_bytes(s.max_m, s.n, s.dtype, team.size(), p, way), p),
        partials(team, s.max_m, s.n, s.dtype, plan, way) {}

  void run(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
           SumEpilogue const& epilogue, Stream) override {
    Recording recording(timeline, team.rank(), plan.workers, SpanKind::kSum);
    DrainAtEnd const drain(channel.copies());
    Call const call = channel.begin(fmt::format("m={}", m));
    partials.multiply(channel, call, m, x, weight, layout, recording);
    partials.sum(channel, call, recording, [&](int, std::span<Tensor const> slots, Place band) {
      host::sum_rows(slots, band.row, band.rows, out, epilogue);
    });
    channel.finish(call);
    recording.close();
  }
  void record(Timeline* to) override { timeline = to; }

 private:
  Plan plan;
  PartialSums::Way way;
  HostChannel channel;
  PartialSums partials;
  Timeline* timeline = nullptr;
};

}  // namespace

std::unique_ptr<SumOperator> host_gemm_rs(Team& team, GemmReduceScatter::Shape const& shape, Plan const& plan) {
  return std::make_unique<HostReduceScatter>(team, shape, plan);
}

}  // namespace flux
