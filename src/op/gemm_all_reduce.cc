// GEMM+AR on the host engine.
#include "engine/host/sum.h"
#include "op/gemm_reduce_scatter.h"

namespace flux {
namespace {

class HostAllReduce final : public HostReduceScatter {
 public:
  // The summed rows, and a word for each of their bands, lie behind the partials.
  HostAllReduce(Team& team, GemmAllReduce::Shape const& s, Plan const& p, PartialSums::Way way,
                std::shared_ptr<Buffers> shared)
      : HostReduceScatter(team, s, p, "gemm_ar", way, std::move(shared),
                          PartialSums::words(s.max_m, team.size(), p, way),
                          s.max_m * s.n * size_of(result_of(s.dtype))),
        result_words(PartialSums::words(s.max_m, team.size(), p, way)),
        result_bytes(PartialSums::data_bytes(s.max_m, s.n, s.dtype, team.size(), p, way)) {}

 private:
  void add_up(Call const& call, int64_t m, Tensor const& out, SumEpilogue const& epilogue,
              Recording& recording) override {
    if (way == PartialSums::Way::kBroadcast)
      HostReduceScatter::add_up(call, m, out, epilogue, recording);
    else
      two_shot(call, m, out, epilogue, recording);
  }
  void two_shot(Call const& call, int64_t m, Tensor const& out, SumEpilogue const& epilogue, Recording& recording);

  int64_t result_words, result_bytes;  // where the summed rows begin
};

// The owner's sums go to everybody band by band; each rank finishes its copy of a row when it has come.
void HostAllReduce::two_shot(Call const& call, int64_t m, Tensor const& out, SumEpilogue const& epilogue,
                             Recording& recording) {
  int const rank = team.rank(), ranks = team.size();
  BandWords const& bands = partials.bands();  // each of its sums has a word
  Shards const& shards = bands.shards;
  DType const result_dtype = result_of(shape.dtype);
  int64_t const row_bytes = shape.n * size_of(result_dtype);
  auto const words = channel.words(call);
  auto const data = channel.data(call);
  auto result = [&](int at) { return matrix(data.at(at) + result_bytes, result_dtype, m, shape.n); };
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

std::unique_ptr<SumOperator> host_gemm_ar(Team& team, GemmAllReduce::Shape const& shape, Plan const& plan,
                                          std::shared_ptr<Buffers> shared) {
  return std::make_unique<HostAllReduce>(team, shape, plan, PartialSums::way_of_all(plan), std::move(shared));
}

MemoryNeed host_gemm_ar_memory(Team& team, GemmAllReduce::Shape const& s, Plan const& plan) {
  auto const way = PartialSums::way_of_all(plan);
  return PartialSums::memory(s.max_m, s.n, s.dtype, team.size(), plan, way,
                             PartialSums::words(s.max_m, team.size(), plan, way),
                             s.max_m * s.n * size_of(result_of(s.dtype)));
}

}  // namespace flux
