#include "bench/gemm/exchange.h"

#include <fmt/format.h>

#include "bench/gemm/copy_rows.h"

namespace flux::bench {
namespace {

int64_t row_bytes(GemmProblem const& p) { return (p.op == "ag_gemm" ? p.k : p.n) * size_of(p.dtype); }
int64_t block_bytes(GemmProblem const& p, int ranks) {
  return row_bytes(p) * (p.op == "gemm_ar" ? p.m : Shards{p.m, ranks, 1}.largest());
}
int64_t channel_bytes(World& world, GemmProblem const& p) {
  int const ranks = world.size();
  if (world.team().gpu()->mirrored()) return 2 * block_bytes(p, ranks);
  return p.op == "ag_gemm" ? p.m * row_bytes(p) : ranks * block_bytes(p, ranks);
}
/// The words of one band that is all of the rows.
BandWords one_band(int64_t rows) { return {{rows, 1, 1}, static_cast<int>(std::max<int64_t>(rows, 1))}; }

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
      channel_(world.team(), fmt::format("exchange {} m={} row={}", p.op, p.m, row_bytes_),
               ranks_ * one_band(p.m).most(), channel_bytes(world, p), parse_plan("buffers=1")),
      rows_(gathers() && !mirrored() ? 1 : p.m * row_bytes_),
      slots_(gathers() || !mirrored() ? 1 : ranks_ * block_bytes_) {
  prepare_slot_sum();
  if (!own.data) return;
  must(cudaMemcpy(own_rows(), own.data, own.bytes(), cudaMemcpyDeviceToDevice));
  must(cudaDeviceSynchronize());
}

std::byte* Exchange::rows() const {
  if (gathers() && !mirrored()) return channel_.data({}).at(rank_);
  return static_cast<std::byte*>(rows_.data());
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
  std::byte* to = channel_.data(call).at(p);
  if (mirrored())
    to += block_bytes_;
  else
    to += gathers() ? shards_.begin(rank_) * row_bytes_ : rank_ * block_bytes_;
  Transfer t;
  if (gathers())
    t = rows_at(own_rows(), to, shards_.size(rank_));
  else if (to_all())
    t = rows_at(rows(), to, shards_.total);
  else
    t = rows_at(rows() + shards_.begin(p) * row_bytes_, to, shards_.size(p));
  if (mirrored() || t.rows == 0) return t;  // nobody waits for a word of no rows
  int64_t const word = gathers() ? arrival(call).layout.index(rank_, 0, 0) : one_band(t.rows).index(rank_, 0);
  t.set = channel_.words(call).at(p) + word, t.goal = call.digest;
  return t;
}

Arrival Exchange::arrival(Call const& call) const {
  ArrivalWords const layout{shards_, {row_bytes_, 1, 1}, std::max<int64_t>(shards_.largest(), 1)};
  return {rank_, layout, channel_.words(call).at(rank_), call.digest, call.watch};
}

void Exchange::copy(bool in, Transfer const& whole, By by) {
  (in ? coming_ : going_) = true;
  Shards const parts{whole.rows, by == By::kHalves ? 2 : 1, 1};
  for (int i = 0; i < parts.ranks; ++i) {
    Transfer t = whole;
    t.from += parts.begin(i) * row_bytes_, t.to += parts.begin(i) * row_bytes_, t.rows = parts.size(i);
    if (i + 1 < parts.ranks) t.set = nullptr;  // the last one tells of both
    (in ? in_ : out_).enqueue({&t, 1});
  }
}

void Exchange::join(bool in, Stream stream) {
  bool& under_way = in ? coming_ : going_;
  if (under_way) (in ? in_ : out_).join(stream);
  under_way = false;
}

void Exchange::fork(Stream stream) {
  out_.fork(stream);
  if (mirrored()) in_.fork(stream);
}

void Exchange::send(Call const& call, int distance, By by) {
  if (mirrored() && !gathers()) copy(true, coming(call, distance), by);
  copy(false, going(call, distance), by);
}

void Exchange::await(Call const& call, int distance, Stream stream) {
  int const p = source(distance);
  if (mirrored()) {
    copy(true, coming(call, distance), By::kCopies);
    join(true, stream);
  } else if (shards_.size(p) > 0) {
    Arrival const all = arrival(call);
    wait_for_rows(all.words + all.layout.index(p, 0, 0), call.digest, call.watch, p, stream);
  }
}

void Exchange::finish(Call const& call, Tensor const& out, Stream stream) {
  join(true, stream), join(false, stream);
  Inputs inputs;
  if (gathers()) {
    if (!mirrored()) inputs.arrival = arrival(call);
  } else {
    SlotSum s = slots(out);
    s.own = to_all() ? rows() : own_rows(), s.own_part = rank_;
    if (!mirrored() && s.bands.count(0) > 0) {
      Word* const words = channel_.words(call).at(rank_);
      Transfer told;  // our own partials are here
      told.set = words + s.bands.index(rank_, 0), told.goal = call.digest;
      enqueue(told, stream);
      s.words = words, s.goal = call.digest, s.sources = ranks_, s.watch = call.watch;
    }
    sum_slots(s, 4 * processors_, stream);
  }
  channel_.finish(call, inputs, stream);
}

SlotSum Exchange::slots(Tensor const& out) const {
  SlotSum s;
  s.bands = one_band(to_all() ? shards_.total : shards_.size(rank_));
  s.slots = mirrored() ? slots_.data() : channel_.data({}).at(rank_);
  s.parts = ranks_, s.slot_rows = block_bytes_ / row_bytes_;
  s.out = out, s.alone = true;  // ranks are processes, or one in a mirror
  if (s.out.rows <= 1) s.out.stride = s.out.columns;
  return s;
}

void Exchange::sum_again(Tensor const& out, std::byte const* own, Stream stream) const {
  SlotSum s = slots(out);
  s.own = own, s.own_part = rank_;
  sum_slots(s, 4 * processors_, stream);
}

void Exchange::send_by_kernel(Call const& call, Stream stream) {
  CopiesBothWays copies;
  for (int i = 1; i < ranks_; ++i) {
    Transfer const g = going(call, i);
    copies.out[i] = {g.to, g.from, g.rows * row_bytes_};
    if (!mirrored()) continue;
    Transfer const c = coming(call, i);
    copies.in[i] = {c.to, c.from, c.rows * row_bytes_};
  }
  copy_rows(copies, stream);
  for (int i = 1; i < ranks_; ++i) {
    Transfer told = going(call, i);
    told.to = nullptr;
    if (told.set) enqueue(told, stream);
  }
}

void Exchange::run(By by, Tensor const& out, Stream stream) {
  Call const call = begin(stream);
  if (by == By::kKernel) {
    send_by_kernel(call, stream);
  } else {
    fork(stream);
    for (int i = 1; i < ranks_; ++i) {
      if (mirrored() && gathers()) copy(true, coming(call, i), by);
      send(call, i, by);
    }
  }
  finish(call, out, stream);
}

}  // namespace flux::bench
