#include "op/gpu/over_nccl.h"

#include <fmt/format.h>

#include "kernel/gemm.h"
#include "op/checks.h"
#include "op/gather.h"
#include "op/gpu/partial_sums.h"
#include "op/gpu/tiles.h"
#include "world/cuda/calls_under_way.h"
#include "world/cuda/nccl.h"

namespace flux {
namespace {

/// What both kinds of operators have: memory of this rank alone, and the order of calls.
class Calls {
 public:
  Calls(Team& team, std::string description, int64_t bytes, Plan const& plan)
      : team_(team), description_(std::move(description)), plan_(plan), under_way_(team.options().limit_seconds) {
    memory_ = team.gpu()->allocate(bytes);
    prepare_slot_sum();
  }
  /// `sizes` is what distinguishes a call from others of the same operator.
  Watch begin(std::string_view sizes, Stream stream) {
    team_.gpu()->activate();
    under_way_.enter(stream, false);
    return team_.begin_call(plan_.lane, digest_of(fmt::format("{} {} {}", description_, to_string(plan_), sizes)));
  }
  void finish(Stream stream) { under_way_.leave(stream); }

  /// Enqueues y = epilogue(x · weight) with all rows at hand.
  void multiply(Tensor const& x, Linear const& linear, Stream stream) const {
    GemmLaunch l;
    l.weight = linear.weight, l.layout = linear.layout, l.bias = linear.bias, l.scales = linear.scales;
    l.activation = linear.activation, l.gated = linear.gated;
    Tiles const tiles = choose_tiles(plan_, {x.rows}, l.n(), l.k(), l.layout, l.gated, x.dtype, team_.gpu()->chip());
    l.tile = tiles.tile, l.processors = gemm_processors(plan_, *team_.gpu()), l.store = plan_.store,
    l.apart = !team_.gpu()->whole();
    l.a.base[0] = x.data, l.a_stride = packed(x).stride;
    l.c.base[0] = linear.out.data, l.c_stride = packed(linear.out).stride;
    l.order = arrange(Order::kNaive, Tiling::kAcross, {x.rows, 1, 1}, tiles.tile.tile_m, tiles.tile.tiles_n(l.n()),
                      tiles.band, 0);
    l.gate = Open{0, l.k()}, l.route = Keep{0, x.rows};
    enqueue_gemm(l, stream);
  }
  /// Enqueues the exchange of rows: `rows(p)` go to p, and `slot(p)` is what p sends.
  template <class Rows, class Slot>
  void exchange(Rows&& rows, Slot&& slot, Stream stream) const {
    std::vector<Nccl::Piece> sends, receives;
    for (int i = 1; i < team_.size(); ++i) {
      int const to = (team_.rank() + i) % team_.size(), from = (team_.rank() - i + team_.size()) % team_.size();
      Tensor const out = rows(to), in = slot(from);
      sends.push_back({out.data, out.bytes(), to}), receives.push_back({in.data, in.bytes(), from});
    }
    team_.gpu()->nccl()->exchange(sends, receives, stream);
    team_.check();  // an exchange that was given up
  }
  std::byte* memory() const { return memory_.get(); }

 private:
  Team& team_;
  std::string description_;
  Plan plan_;
  std::shared_ptr<std::byte> memory_;
  CallsUnderWay under_way_;  // goes first: it waits for the calls
};

Tensor part(Tensor const& all, Part rows) {
  Tensor t = all;
  t.data = all.row(rows.begin), t.rows = rows.size;
  return t;
}

class NcclGather final : public GatherOperator {
 public:
  NcclGather(Team& team, AllGatherGemm::Shape const& s, Plan const& plan)
      : GatherOperator(team, s),
        calls(team, fmt::format("ag_gemm m<={} k={} {}", s.max_m, s.k, name(s.dtype)), nccl_ag_gemm_memory(s).own,
              plan) {
    require_k_on_gpu(s);
    prepare_tiles(plan, s.dtype, *team.gpu());
  }
  void run(int64_t m, Tensor const& x, std::span<Linear const> linears, Tensor const& gathered,
           Stream stream) override {
    require_on_gpu("x", x), require_on_gpu("the gathered output", gathered);
    for (Linear const& l : linears) require_on_gpu(l);
    calls.begin(fmt::format("m={}", m), stream);
    Tensor const all = matrix(calls.memory(), shape.dtype, m, shape.k);
    Tensor const own = part(all, part_of_rows(m, team.rank(), team.size()));
    enqueue(copy(x, own), stream);
    calls.exchange([&](int) { return own; }, [&](int p) { return part(all, part_of_rows(m, p, team.size())); }, stream);
    for (Linear const& l : linears) calls.multiply(all, l, stream);
    if (gathered) enqueue(copy(all, gathered), stream);
    calls.finish(stream);
  }
  void record(Timeline* to) override {
    if (to) throw Error(ErrorKind::kUnsupported, "calls through NCCL have no timeline");
  }

 private:
  static Transfer copy(Tensor const& from, Tensor const& to) {
    Transfer t;
    t.from = static_cast<std::byte const*>(from.data), t.to = static_cast<std::byte*>(to.data);
    t.rows = from.rows, t.row_bytes = from.columns * size_of(from.dtype);
    t.from_stride = packed(from).stride * size_of(from.dtype), t.to_stride = packed(to).stride * size_of(to.dtype);
    return t;
  }
  Calls calls;
};

// Partials lie in [max_m, n]; behind them a slot for each rank, and for all rows of GEMM+AR the sums.
class NcclSums final : public SumOperator {
 public:
  NcclSums(Team& team, GemmReduceScatter::Shape const& s, Plan const& plan, bool all)
      : SumOperator(team, s),
        all(all),
        calls(team, fmt::format("{} m<={} n={} {}", all ? "gemm_ar" : "gemm_rs", s.max_m, s.n, name(s.dtype)),
              nccl_sums_memory(s, team.size(), all).own, plan) {
    require(s.n % 8 == 0, "n is {}; on GPUs it is a multiple of 8", s.n);
    prepare_tiles(plan, s.dtype, *team.gpu());
  }
  void run(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
           SumEpilogue const& epilogue, Stream stream) override {
    GpuPartialSums::require_operands(x, weight, out, epilogue);
    Watch const watch = calls.begin(fmt::format("m={}", m), stream);
    if (m > 0 && shape.n > 0) add_up(m, x, weight, layout, out, epilogue, watch, stream);
    calls.finish(stream);
  }
  void record(Timeline* to) override {
    if (to) throw Error(ErrorKind::kUnsupported, "calls through NCCL have no timeline");
  }

 private:
  void add_up(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
              SumEpilogue const& epilogue, Watch const& watch, Stream stream) {
    int const rank = team.rank(), ranks = team.size();
    DType const result = result_of(shape.dtype);
    int64_t const row_bytes = shape.n * size_of(result), slot_rows = Shards{m, ranks, 1}.largest();
    auto rows_of = [&](int p) { return part_of_rows(m, p, ranks); };
    Tensor const partials = matrix(calls.memory(), result, m, shape.n);
    std::byte* const slots = calls.memory() + shape.max_m * row_bytes;
    Tensor const sums = matrix(slots + ranks * Shards{shape.max_m, ranks, 1}.largest() * row_bytes, result, m, shape.n);
    Linear linear;
    linear.weight = weight, linear.layout = layout, linear.out = partials, linear.scales = epilogue.scales;
    calls.multiply(x, linear, stream);
    calls.exchange(
        [&](int p) { return part(partials, rows_of(p)); },
        [&](int p) { return matrix(slots + p * slot_rows * row_bytes, result, rows_of(rank).size, shape.n); }, stream);
    SumEpilogue at_owner = epilogue, here;
    Tensor own = out;
    if (all) {  // bias and residual at the owner, the norm where the rows end
      own = part(sums, rows_of(rank)), at_owner.norm_weight = at_owner.normed = {};
      if (epilogue.residual) at_owner.residual = part(epilogue.residual, rows_of(rank));
      here.norm_weight = epilogue.norm_weight, here.normed = epilogue.normed, here.norm_epsilon = epilogue.norm_epsilon;
    }
    sum(slots, slot_rows, ranks, part(partials, rows_of(rank)).data, own, at_owner, watch, stream);
    if (!all) return;
    calls.exchange([&](int) { return own; }, [&](int p) { return part(sums, rows_of(p)); }, stream);
    sum(sums.data, m, 1, nullptr, out, here, watch, stream);
  }
  void sum(void const* slots, int64_t slot_rows, int parts, void const* own, Tensor const& out,
           SumEpilogue const& epilogue, Watch const& watch, Stream stream) const {
    SlotSum s{GpuPartialSums::summed(*team.gpu(), out, epilogue)};
    s.watch = watch, s.slots = slots, s.slot_rows = slot_rows, s.parts = parts;
    if (own) s.own = own, s.own_part = team.rank();
    s.bands = {{out.rows, 1, 1}, static_cast<int>(std::max<int64_t>(out.rows, 1))};
    sum_slots(s, 4 * team.gpu()->processors(), stream);
  }

  bool const all;
  Calls calls;
};

}  // namespace

std::unique_ptr<GatherOperator> nccl_ag_gemm(Team& team, AllGatherGemm::Shape const& shape, Plan const& plan) {
  return std::make_unique<NcclGather>(team, shape, plan);
}
std::unique_ptr<SumOperator> nccl_sums(Team& team, GemmReduceScatter::Shape const& shape, Plan const& plan, bool all) {
  return std::make_unique<NcclSums>(team, shape, plan, all);
}

MemoryNeed nccl_ag_gemm_memory(AllGatherGemm::Shape const& s) { return {1, 0, 0, s.max_m * s.k * size_of(s.dtype)}; }
MemoryNeed nccl_sums_memory(GemmReduceScatter::Shape const& s, int ranks, bool all) {
  int64_t const slots = ranks * Shards{s.max_m, ranks, 1}.largest();
  return {1, 0, 0, (s.max_m + slots + (all ? s.max_m : 0)) * s.n * size_of(result_of(s.dtype))};
}

}  // namespace flux
