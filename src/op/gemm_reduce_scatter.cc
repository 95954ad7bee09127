#include "op/gemm_reduce_scatter.h"

#include <fmt/format.h>

#include "engine/host/sum.h"

namespace flux {

HostReduceScatter::HostReduceScatter(Team& team, GemmReduceScatter::Shape const& s, Plan const& p, std::string_view op,
                                     PartialSums::Way way, std::shared_ptr<Buffers> shared, int64_t more_words,
                                     int64_t more_bytes)
    : SumOperator(team, s),
      plan(on_host(p)),
      way(way),
      channel(team, fmt::format("{} m<={} n={} {}", op, s.max_m, s.n, name(s.dtype)),
              PartialSums::words(s.max_m, team.nodes(), p, way) + more_words,
              PartialSums::data_bytes(s.max_m, s.n, s.dtype, team.nodes(), p, way) + more_bytes, p, std::move(shared)),
      partials(team, s.max_m, s.n, s.dtype, plan, way) {}

void HostReduceScatter::run(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
                            SumEpilogue const& epilogue, Stream) {
  Recording recording(timeline_, team.rank(), plan.workers, SpanKind::kSum);
  DrainAtEnd const drain(channel);
  Call const call = channel.begin(fmt::format("m={}", m));
  partials.multiply(channel, call, m, x, weight, layout, epilogue.scales, recording);
  add_up(call, m, out, epilogue, recording);
  channel.finish(call);
  recording.close();
}

void HostReduceScatter::add_up(Call const& call, int64_t, Tensor const& out, SumEpilogue const& epilogue,
                               Recording& recording) {
  partials.sum(channel, call, recording, [&](int, std::span<Tensor const> slots, Place band) {
    host::sum_rows(slots, band.row, band.rows, out, epilogue);
  });
}

std::unique_ptr<SumOperator> host_gemm_rs(Team& team, GemmReduceScatter::Shape const& shape, Plan const& plan,
                                          std::shared_ptr<Buffers> shared) {
  return std::make_unique<HostReduceScatter>(team, shape, plan, "gemm_rs", PartialSums::way_of(plan),
                                             std::move(shared));
}

MemoryNeed host_gemm_rs_memory(Team& team, GemmReduceScatter::Shape const& s, Plan const& plan) {
  return PartialSums::memory(s.max_m, s.n, s.dtype, team.nodes(), plan, PartialSums::way_of(plan));
}

}  // namespace flux
