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
                          PartialSums::words(s.max_m, team.nodes(), p, way),
                          s.max_m * s.n * size_of(result_of(s.dtype))),
        result_words(PartialSums::words(s.max_m, team.nodes(), p, way)),
        result_bytes(PartialSums::data_bytes(s.max_m, s.n, s.dtype, team.nodes(), p, way)) {}

 private:
  void add_up(Call const& call, int64_t m, Tensor const& out, SumEpilogue const& epilogue,
              Recording& recording) override {
    if (way == PartialSums::Way::kBroadcast)
      HostReduceScatter::add_up(call, m, out, epilogue, recording);
    else
      two_shot(call, m, out, epilogue, recording);
  }
  void two_shot(Call const& call, int64_t m, Tensor const& out, SumEpilogue const& epilogue, Recording& recording);
  /// A band of sums of `owner`, from where it lies here to another rank.
  Transfer result(Call const& call, int64_t m, Place band, int to);
  void exchange_results(Call const& call, int64_t m, Recording& recording);
  std::vector<Transfer> handed_on(Call const& call, int64_t m);

  int64_t result_words, result_bytes;  // where the summed rows begin
};

Transfer HostAllReduce::result(Call const& call, int64_t m, Place band, int to) {
  BandWords const& bands = partials.bands();
  auto at = [&](int rank, int64_t row) {
    std::byte* const data = channel.data(call).at(rank);
    return data ? static_cast<std::byte*>(matrix(data + result_bytes, result_of(shape.dtype), m, shape.n).row(row))
                : nullptr;
  };
  Transfer t = rows_of(bands, band, shape.n * size_of(result_of(shape.dtype)), call.digest);
  t.from = at(team.rank(), t.row), t.to = at(to, t.row);
  t.peer = to, t.awaited = Awaited::kResult, t.awaited_from = band.rank;
  Word* const words = channel.words(call).at(to);
  if (words) t.set = words + result_words + bands.index(band.rank, bands.index(band));
  return t;
}

// Our sums go along the rails as they are made, and our peers' come.
void HostAllReduce::exchange_results(Call const& call, int64_t m, Recording& recording) {
  int const rank = team.rank();
  BandWords const& bands = partials.bands();
  for (int peer : team.nodes().rail(rank)) {
    std::vector<Transfer> coming, leaving;
    for (int b = 0; b < bands.count(peer); ++b) coming.push_back(result(call, m, bands.place(peer, b), rank));
    for (int b = 0; b < bands.count(rank); ++b) {
      leaving.push_back(result(call, m, bands.place(rank, b), peer));
      leaving.back().after = result(call, m, bands.place(rank, b), rank).set;
    }
    channel.rail()->receive(peer, std::move(coming), call.watch);
    channel.rail()->send(peer, std::move(leaving), call.watch, recording.rail(peer));
  }
}

// What came along the rails goes on to our node.
std::vector<Transfer> HostAllReduce::handed_on(Call const& call, int64_t m) {
  std::vector<Transfer> list;
  BandWords const& bands = partials.bands();
  for (int peer : team.nodes().rail(team.rank()))
    for (int b = 0; b < bands.count(peer); ++b)
      for (int to : team.neighbours()) {
        if (to == team.rank()) continue;
        list.push_back(result(call, m, bands.place(peer, b), to));
        list.back().after = result(call, m, bands.place(peer, b), team.rank()).set;
      }
  return list;
}

// The owner's sums go to everybody band by band; each rank finishes its copy of a row when it has come.
void HostAllReduce::two_shot(Call const& call, int64_t m, Tensor const& out, SumEpilogue const& epilogue,
                             Recording& recording) {
  int const rank = team.rank(), ranks = team.size();
  BandWords const& bands = partials.bands();  // each of its sums has a word
  Shards const& shards = bands.shards;
  Link const link = team.options().link;
  Tensor const all = matrix(channel.data(call).at(rank) + result_bytes, result_of(shape.dtype), m, shape.n);
  if (shape.n > 0) exchange_results(call, m, recording);

  SumEpilogue at_owner;
  at_owner.bias = epilogue.bias;
  Tensor summed = all;
  summed.data = summed.row(shards.begin(rank)), summed.rows = shards.size(rank);
  if (epilogue.residual) {
    at_owner.residual = epilogue.residual;
    at_owner.residual.data = epilogue.residual.row(shards.begin(rank));
  }
  partials.sum(channel, call, recording, [&](int, std::span<Tensor const> slots, Place band) {
    host::sum_rows(slots, band.row, band.rows, summed, at_owner);
    store_release(result(call, m, band, rank).set, call.digest);  // for the rails
    std::vector<Transfer> sends;
    Nodes const& nodes = team.nodes();
    for (int i = 1; i < nodes.size(); ++i) sends.push_back(result(call, m, band, nodes.neighbour(rank, i)));
    channel.copies().enqueue(std::move(sends), link, call.watch, recording.copies());
  });
  if (shape.n > 0) channel.copies().enqueue(handed_on(call, m), link, call.watch, recording.copies());

  SumEpilogue here;
  here.norm_weight = epilogue.norm_weight, here.normed = epilogue.normed, here.norm_epsilon = epilogue.norm_epsilon;
  for (int i = 0; i < ranks && shape.n > 0; ++i) {
    int const owner = (rank - i + ranks) % ranks;
    for (int b = 0; b < bands.count(owner); ++b) {
      Place const band = bands.place(owner, b);
      int64_t const row = shards.begin(owner) + band.row;
      if (!await(result(call, m, band, rank).set, call.digest, call.watch, Awaited::kResult, owner, row)) team.check();
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
  return PartialSums::memory(s.max_m, s.n, s.dtype, team.nodes(), plan, way,
                             PartialSums::words(s.max_m, team.nodes(), plan, way),
                             s.max_m * s.n * size_of(result_of(s.dtype)));
}

}  // namespace flux
