// GEMM+AR on the host engine.
#include <fmt/format.h>

#include "engine/host/sum.h"
#include "op/operators.h"
#include "op/partial_sums.h"

namespace flux {
namespace {

class HostAllReduce final : public SumOperator {
 public:
  HostAllReduce(Team& team, GemmAllReduce::Shape const& s, Plan const& p)
      : SumOperator(team, s),
        plan(on_host(p)),
        way(PartialSums::way_of_all(p)),
        result_words(PartialSums::words(s.max_m, team.size(), p, way)),
        result_bytes(PartialSums::data_bytes(s.max_m, s.n, s.dtype, team.size(), p, way)),
        channel(team, fmt::format("gemm_ar m<={} n={} {}", s.max_m, s.n, name(s.dtype)), 2 * result_words,
                result_bytes + s.max_m * s.n * size_of(s.dtype), p),
        partials(team, s.max_m, s.n, s.dtype, plan, way) {}

  void run(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
           SumEpilogue const& epilogue, Stream) override {
    Recording recording(timeline, team.rank(), plan.workers, SpanKind::kSum);
    DrainAtEnd const drain(channel.copies());
    Call const call = channel.begin(fmt::format("m={}", m));
    partials.multiply(channel, call, m, x, weight, layout, recording);
    if (way == PartialSums::Way::kBroadcast) {
      partials.sum(channel, call, recording, [&](int, std::span<Tensor const> slots, Place band) {
        host::sum_rows(slots, band.row, band.rows, out, epilogue);
      });
    } else {
      two_shot(call, m, out, epilogue, recording);
    }
    channel.finish(call);
    recording.close();
  }
  void record(Timeline* to) override { timeline = to; }

 private:
  void two_shot(Call const& call, int64_t m, Tensor const& out, SumEpilogue const& epilogue, Recording& recording);

  Plan plan;
  PartialSums::Way way;
  int64_t result_words, result_bytes;  // where the summed rows begin, behind the partials
  HostChannel channel;
  PartialSums partials;
  Timeline* timeline = nullptr;
};

// The owner's sums go to everybody band by band; each rank finishes its copy of a row when it has come.
void HostAllReduce::two_shot(Call const& call, int64_t m, Tensor const& out, SumEpilogue const& epilogue,
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

}  // namespace

std::unique_ptr<SumOperator> host_gemm_ar(Team& team, GemmAllReduce::Shape const& shape, Plan const& plan) {
  return std::make_unique<HostAllReduce>(team, shape, plan);
}

}  // namespace flux
