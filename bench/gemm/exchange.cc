#include "bench/gemm/exchange.h"

#include <fmt/format.h>

#include "bench/gemm/copy_rows.h"
#include "kernel/slot_sum.h"

namespace flux::bench {
namespace {

int64_t row_bytes(GemmProblem const& p) { return (p.op == "ag_gemm" ? p.k : p.n) * size_of(p.dtype); }
int64_t block_bytes(GemmProblem const& p, int ranks) {
  return row_bytes(p) * (p.op == "gemm_ar" ? p.m : Shards{p.m, ranks, 1}.largest());
}

}  // namespace

Exchange::Exchange(World& world, GemmProblem const& p, Tensor const& own)
    : op_(parse_op(p.op)),
      rank_(world.rank()),
      ranks_(world.size()),
      processors_(world.team().gpu()->processors()),
      dtype_(p.dtype),
      shards_{p.m, ranks_, 1},
      row_bytes_(bench::row_bytes(p)),
      block_bytes_(bench::block_bytes(p, ranks_)),
      own_(own),
      channel_(world.team(), fmt::format("exchange {} m={} row={}", p.op, p.m, row_bytes_), ranks_, 2 * block_bytes_,
               parse_plan("buffers=1")),
      rows_(p.m * row_bytes_),
      slots_(gathers() ? 1 : ranks_ * block_bytes_) {
  prepare_slot_sum();
}

int64_t Exchange::sent_bytes() const {
  if (to_all()) return (ranks_ - 1) * block_bytes_;
  return (gathers() ? (ranks_ - 1) * shards_.size(rank_) : shards_.total - shards_.size(rank_)) * row_bytes_;
}

Transfer Exchange::rows_at(std::byte const* from, std::byte* to, int64_t rows) const {
  Transfer t;
  t.from = from, t.to = to, t.rows = rows;
  t.row_bytes = t.from_stride = t.to_stride = row_bytes_;
  return t;
}

Transfer Exchange::coming(Call const& call, int distance) const {
  int const p = source(distance);
  std::byte const* const from = channel_.data(call).at(p);
  if (gathers()) return rows_at(from, rows() + shards_.begin(p) * row_bytes_, shards_.size(p));
  auto const slot = static_cast<std::byte*>(slots_.data()) + p * block_bytes_;
  return rows_at(from, slot, to_all() ? shards_.total : shards_.size(rank_));
}

Transfer Exchange::going(Call const& call, int distance) const {
  int const p = owner(distance);
  std::byte* const to = channel_.data(call).at(p) + block_bytes_;
  if (gathers()) return rows_at(static_cast<std::byte const*>(own_.data), to, shards_.size(rank_));
  if (to_all()) return rows_at(rows(), to, shards_.total);
  return rows_at(rows() + shards_.begin(p) * row_bytes_, to, shards_.size(p));
}

void Exchange::sum(Tensor const& out_rows, Stream stream, std::byte const* own) const {
  int64_t const first = to_all() ? 0 : shards_.begin(rank_), count = to_all() ? shards_.total : shards_.size(rank_);
  SlotSum s;
  s.bands = {{count, 1, 1}, static_cast<int>(std::max<int64_t>(count, 1))};
  s.slots = slots_.data(), s.parts = ranks_, s.slot_rows = block_bytes_ / row_bytes_;
  s.own = own ? own : rows() + first * row_bytes_, s.own_part = rank_;
  s.out = out_rows;
  if (s.out.rows <= 1) s.out.stride = s.out.columns;
  sum_slots(s, 4 * processors_, stream);
}

void Exchange::run(By by, Tensor const& out_rows, Stream stream) {
  Call const call = begin(stream);
  if (by == By::kKernel) {
    CopiesBothWays copies;
    for (int i = 1; i < ranks_; ++i) {
      Transfer const c = coming(call, i), g = going(call, i);
      copies.in[i] = {c.to, c.from, c.rows * row_bytes_}, copies.out[i] = {g.to, g.from, g.rows * row_bytes_};
    }
    copy_rows(copies, stream);
  } else {
    in.fork(stream), out.fork(stream);
    auto enqueue = [&](CopyStream& way, Transfer const& whole) {
      int64_t const pieces = by == By::kHalves ? 2 : 1;
      Shards const parts{whole.rows, static_cast<int>(pieces), 1};
      for (int i = 0; i < pieces; ++i) {
        Transfer t = whole;
        t.from += parts.begin(i) * row_bytes_, t.to += parts.begin(i) * row_bytes_, t.rows = parts.size(i);
        way.enqueue({&t, 1});
      }
    };
    for (int i = 1; i < ranks_; ++i) enqueue(in, coming(call, i)), enqueue(out, going(call, i));
    in.join(stream), out.join(stream);
  }
  if (!gathers()) sum(out_rows, stream);
  finish(call, stream);
}

}  // namespace flux::bench
