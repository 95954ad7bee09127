// GEMM+RS and GEMM+AR on GPUs.
#include <fmt/format.h>

#include "op/checks.h"
#include "op/gather.h"
#include "op/gpu/over_nccl.h"
#include "op/gpu/over_nodes.h"
#include "op/gpu/packets.h"
#include "op/gpu/partial_sums.h"
#include "op/operators.h"

namespace flux {
namespace {

/// What an operator takes behind its partials: for sums that go to everybody.
struct More {
  int64_t words = 0, bytes = 0, scratch = 0;
};

class GpuReduceScatter : public SumOperator {
 public:
  /// As HostReduceScatter.
  GpuReduceScatter(Team& team, GemmReduceScatter::Shape const& s, Plan const& p, Op op, PartialSums::Way way,
                   std::shared_ptr<Buffers> shared, More const& more = {})
      : SumOperator(team, s),
        way(way),
        channel(team, fmt::format("{} m<={} n={} {}", name(op), s.max_m, s.n, name(s.dtype)),
                PartialSums::words(s.max_m, team.nodes(), p, way) + more.words,
                PartialSums::data_bytes(s.max_m, s.n, s.dtype, team.nodes(), p, way) + more.bytes, p, std::move(shared),
                extra(team, s, p, op, way, more)),
        partials(team, s.max_m, s.n, s.k, s.dtype, p, way, channel.buffers().scratch()),
        packets(team, use(s, op), p, channel.buffers()) {}
  ~GpuReduceScatter() override { channel.drain(); }

  static GpuPackets::Use use(GemmReduceScatter::Shape const& s, Op op) {
    return {op, s.max_m, s.n, result_of(s.dtype)};
  }
  static Buffers::Extra extra(Team& team, GemmReduceScatter::Shape const& s, Plan const& p, Op op, PartialSums::Way way,
                              More const& more) {
    Buffers::Extra need = GpuPackets::need(team, use(s, op), p);
    int64_t const partials = GpuPartialSums::scratch_bytes(team, s.max_m, s.n, s.dtype, p, way);
    need.scratch_bytes = std::max(need.scratch_bytes, partials + more.scratch);
    return need;
  }

  void run(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
           SumEpilogue const& epilogue, Stream stream) override {
    GpuPartialSums::require_operands(x, weight, out, epilogue);
    if (packets.shots(m) != PacketShots::kNone) return by_packets(m, x, weight, layout, out, epilogue, stream);
    refuse(m);
    Tiles const tiles = partials.tiles(m, layout);  // refuses before the call begins
    GpuRecording* const recording = partials.recording();
    if (recording) partials.reserve(tiles, m, weight, layout), recording->begin(channel, stream);
    Call const call =
        channel.begin(fmt::format("m={} tile={}.{}", m, static_cast<int>(tiles.tile.engine), tiles.tile.row), stream);
    multiply_and_sum(call, tiles, m, x, weight, layout, out, epilogue, stream);
    if (recording) recording->close(channel, stream);
  }
  void record(Timeline* to) override { partials.record(to); }

 protected:
  /// All of the call from its beginning on.
  virtual void multiply_and_sum(Call const& call, Tiles const& tiles, int64_t m, Tensor const& x, Tensor const& weight,
                                WeightLayout layout, Tensor const& out, SumEpilogue const& epilogue, Stream stream) {
    partials.run(channel, call, tiles, m, x, weight, layout, out, epilogue, stream);
    channel.finish(call, {}, stream);
  }

  /// A call of `m` rows that does not go by packets.
  virtual void refuse(int64_t /*m*/) const {}

  PartialSums::Way const way;
  GpuChannel channel;
  GpuPartialSums partials;
  GpuPackets packets;

 private:
  void by_packets(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
                  SumEpilogue const& epilogue, Stream stream) {
    Linear linear;
    linear.weight = weight, linear.layout = layout, linear.out = packets.rows(m), linear.scales = epilogue.scales;
    int64_t const k = layout == WeightLayout::kOutIn ? weight.columns : weight.rows;
    GemmLaunch gemm = packets.gemm(packets.tiles(m, shape.n, k, layout, false, shape.dtype), x, linear);
    GpuRecording* const recording = partials.recording();
    if (recording) recording->reserve(gemm), recording->begin(channel, stream);
    Call const call = channel.enter(fmt::format("m={}", m), stream);
    if (recording) gemm.stamps = recording->stamps(gemm);
    enqueue_gemm(gemm, stream);
    if (recording) recording->begin_part(SpanKind::kSum, stream);
    packets.exchange(call, m, linear.out, out, epilogue, stream);
    if (recording) recording->end_part(stream);
    channel.leave(stream);
    if (recording) recording->close(channel, stream);
  }
};

class GpuAllReduce final : public GpuReduceScatter {
 public:
  // The summed rows, and a word an owner, over nodes one for each piece that travels, lie behind the partials; through
  // host memory the rows in scratch, and in the buffer a box for our own.
  GpuAllReduce(Team& team, GemmAllReduce::Shape const& s, Plan const& p, PartialSums::Way way,
               std::shared_ptr<Buffers> shared)
      : GpuReduceScatter(team, s, p, Op::kGemmAllReduce, way, std::move(shared), sums(team, s)),
        result_words(PartialSums::words(s.max_m, team.nodes(), p, way)),
        result_bytes(PartialSums::data_bytes(s.max_m, s.n, s.dtype, team.nodes(), p, way)),
        result_scratch(GpuPartialSums::scratch_bytes(team, s.max_m, s.n, s.dtype, p, way)) {}

  static More sums(Team& team, GemmAllReduce::Shape const& s) {
    int64_t const row = s.n * size_of(result_of(s.dtype)), all = s.max_m * row;
    if (team.gpu()->spans_nodes()) return {team.size() * kRailPieces, all, 0};
    if (!team.gpu()->through_host()) return {team.size(), all, 0};
    return {team.size(), Shards{s.max_m, team.size(), 1}.largest() * row, all};
  }

 private:
  void refuse(int64_t /*m*/) const override {
    require(way == PartialSums::Way::kBroadcast || !team.gpu()->mirrored(),
            "shots=two has no mirror where rows are too many for packets: nobody replays the sums; use shots=one");
  }
  void multiply_and_sum(Call const& call, Tiles const& tiles, int64_t m, Tensor const& x, Tensor const& weight,
                        WeightLayout layout, Tensor const& out, SumEpilogue const& epilogue, Stream stream) override {
    if (way == PartialSums::Way::kBroadcast)
      GpuReduceScatter::multiply_and_sum(call, tiles, m, x, weight, layout, out, epilogue, stream);
    else
      two_shot(call, tiles, m, x, weight, layout, out, epilogue, stream);
  }

  // Each owner's sums go to everybody as the shards of an all-gather do, one word an owner.
  void two_shot(Call const& call, Tiles const& tiles, int64_t m, Tensor const& x, Tensor const& weight,
                WeightLayout layout, Tensor const& out, SumEpilogue const& epilogue, Stream stream) {
    int const rank = team.rank(), ranks = team.size();
    Gather gather{rank, arrival_words(m, shape.n, ranks, 8, with_pieces({}, m, team.nodes())), {}, call.digest};
    DType const result = result_of(shape.dtype);
    gather.element_bytes = size_of(result);
    gather.row_bytes = gather.own_stride = shape.n * gather.element_bytes;
    for (int p = 0; p < ranks; ++p) {
      gather.buffers.base[p] = channel.data(call).at(p) + result_bytes;
      gather.words.base[p] = channel.words(call).at(p) + result_words;
    }
    if (channel.through_host()) {
      gather.boxes = gather.buffers, gather.filled = gather.words.at(rank);
      gather.buffers.base[rank] = channel.buffers().scratch().get() + result_scratch;
      gather.words.base[rank] = channel.fetched() + result_words;
    }
    Shards const shards = gather.layout.shards;
    gather.own = gather.buffers.at(rank) + shards.begin(rank) * gather.row_bytes;
    Tensor const all = matrix(gather.buffers.at(rank), result, m, shape.n);
    Tensor summed = all;
    summed.data = all.row(shards.begin(rank)), summed.rows = shards.size(rank);

    SumEpilogue at_owner, here;
    at_owner.bias = epilogue.bias, at_owner.residual = epilogue.residual, at_owner.scales = epilogue.scales;
    if (epilogue.residual) at_owner.residual.data = epilogue.residual.row(shards.begin(rank));
    here.norm_weight = epilogue.norm_weight, here.normed = epilogue.normed, here.norm_epsilon = epilogue.norm_epsilon;
    partials.run(channel, call, tiles, m, x, weight, layout, summed, at_owner, stream);
    Inputs results;
    if (m > 0 && shape.n > 0) {
      results.arrival = {rank, gather.layout, gather.words.at(rank), call.digest, call.watch};
      channel.copies().fork(stream);
      if (channel.rail()) channel.rail()->fork(stream);
      if (channel.rail())
        gather_over_nodes(channel, gather, call.watch, 0, result);
      else if (channel.through_host())
        channel.copies().enqueue(to_box(gather)), channel.fetch(from_boxes(gather));
      else
        channel.copies().enqueue(copies(gather));
      enqueue_wait(channel.words_of(call), results, stream);
      partials.finish_rows(call, all, out, here, stream);
      channel.copies().join(stream);
      if (channel.rail()) channel.rail()->join(stream);
    }
    channel.finish(call, results, stream);
  }

  int64_t result_words, result_bytes, result_scratch;  // where the summed rows begin
};

MemoryNeed memory_of(Team& team, GemmReduceScatter::Shape const& s, Plan const& p, Op op, PartialSums::Way way,
                     More const& more) {
  int64_t const words = PartialSums::words(s.max_m, team.nodes(), p, way);
  int64_t const own = (way == PartialSums::Way::kStage ? 1 + team.size() : 1) * words * int64_t{sizeof(Word)};
  return memory_need(
      words + more.words, PartialSums::data_bytes(s.max_m, s.n, s.dtype, team.nodes(), p, way) + more.bytes, p,
      GpuReduceScatter::extra(team, s, p, op, way, more), own + GpuChannel::own_bytes(team, words + more.words));
}

PartialSums::Way way_of(Team& team, Plan const& plan) { return PartialSums::way_of(with_route(plan, *team.gpu())); }
/// A mirror knows one shot alone.
PartialSums::Way way_of_all(Team& team, Plan plan) {
  if (team.gpu()->mirrored() && plan.shots == Shots::kAuto) plan.shots = Shots::kOneShot;
  return PartialSums::way_of_all(with_route(plan, *team.gpu()));
}

}  // namespace

std::unique_ptr<SumOperator> gpu_gemm_rs(Team& team, GemmReduceScatter::Shape const& shape, Plan const& plan,
                                         std::shared_ptr<Buffers> shared) {
  if (team.gpu()->nccl()) return nccl_sums(team, shape, plan, false);
  return std::make_unique<GpuReduceScatter>(team, shape, plan, Op::kGemmReduceScatter, way_of(team, plan),
                                            std::move(shared));
}
std::unique_ptr<SumOperator> gpu_gemm_ar(Team& team, GemmAllReduce::Shape const& shape, Plan const& plan,
                                         std::shared_ptr<Buffers> shared) {
  if (team.gpu()->nccl()) return nccl_sums(team, shape, plan, true);
  return std::make_unique<GpuAllReduce>(team, shape, plan, way_of_all(team, plan), std::move(shared));
}

MemoryNeed gpu_gemm_rs_memory(Team& team, GemmReduceScatter::Shape const& shape, Plan const& plan) {
  if (team.gpu()->nccl()) return nccl_sums_memory(shape, team.size(), false);
  return memory_of(team, shape, plan, Op::kGemmReduceScatter, way_of(team, plan), {});
}
MemoryNeed gpu_gemm_ar_memory(Team& team, GemmAllReduce::Shape const& s, Plan const& plan) {
  if (team.gpu()->nccl()) return nccl_sums_memory(s, team.size(), true);
  return memory_of(team, s, plan, Op::kGemmAllReduce, way_of_all(team, plan), GpuAllReduce::sums(team, s));
}

}  // namespace flux
