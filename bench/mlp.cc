#include "bench/mlp.h"

#include <fmt/format.h>

#include <cstring>

namespace flux::bench {
namespace {

Tensor rows_of(Tensor t, int64_t first, int64_t count) {
  t.data = t.row(first), t.rows = count;
  return t;
}
Tensor columns_of(Tensor t, int64_t first, int64_t count) {
  t.data = host::element(t.data, t.dtype, first), t.columns = count;
  return t;
}

OwnedTensor converted(Tensor const& from, DType dtype) {
  OwnedTensor to(dtype, from.rows, from.columns);
  Matrix64 const wide = widened(from);
  for (int64_t r = 0; r < from.rows; ++r) host::narrow(wide.row(r), to.view().row(r), dtype, from.columns);
  return to;
}

// Gate and up as one weight: one above the other, or side by side.
OwnedTensor joined(Tensor const& gate, Tensor const& up, bool above, DType dtype) {
  OwnedTensor both(dtype, above ? 2 * gate.rows : gate.rows, above ? gate.columns : 2 * gate.columns);
  Matrix64 const first = widened(gate), second = widened(up);
  for (int64_t r = 0; r < gate.rows; ++r) {
    host::narrow(first.row(r), both.view().row(r), dtype, gate.columns);
    void* const at = above ? both.view().row(gate.rows + r) : host::element(both.view().row(r), dtype, gate.columns);
    host::narrow(second.row(r), at, dtype, up.columns);
  }
  return both;
}

// `t` itself, or a copy in `keep` where dtype or alignment do not fit.
Tensor usable(Tensor const& t, DType dtype, OwnedTensor& keep) {
  if (!t || (t.dtype == dtype && aligned(t))) return t;
  keep = converted(t, dtype);
  return keep;
}

}  // namespace

Mlp::Mlp(World& world, MlpWeights const& w, DType dtype, Tensor const& x, Plan const& plan)
    : world_(world),
      weights_(w),
      dtype_(dtype),
      all_rows_(x),
      m_(x.rows),
      layout_(w.layout),
      placed_(world),
      tiled_(plan),
      whole_first_(PlainGemm::whole(m_, part_of_columns(w.intermediate, world.rank(), world.size()).size)),
      whole_second_(PlainGemm::whole(m_, w.hidden)) {
  if (x.columns != w.hidden)
    throw Error(ErrorKind::kInvalid, fmt::format("x has {} columns; this MLP takes {}", x.columns, w.hidden));
  Part const rows = part_of_rows(m_, world.rank(), world.size());
  Part const part = part_of_columns(w.intermediate, world.rank(), world.size());
  auto first = [&](Tensor const& t) {
    return w.layout == WeightLayout::kInOut ? columns_of(t, part.begin, part.size) : rows_of(t, part.begin, part.size);
  };
  auto bias = [&](Tensor const& t) { return t ? columns_of(t, part.begin, part.size) : t; };
  x_ = converted(rows_of(x, rows.begin, rows.size), dtype);
  if (!world.on_gpu()) gemm_x_ = converted(x, dtype);
  hidden_ = OwnedTensor(dtype, m_, part.size);
  y_ = OwnedTensor(dtype, rows.size, w.hidden);
  if (!world.on_gpu()) gemm_y_ = OwnedTensor(dtype, m_, w.hidden);
  first_.out = hidden_, first_.layout = layout_, first_.activation = w.activation, first_.gated = w.gated();
  first_.weight = usable(first(w.gated() ? w.gate : w.up), dtype, gate_);
  first_.bias = usable(bias(w.gated() ? w.gate_bias : w.up_bias), dtype, gate_bias_);
  if (w.gated()) {
    first_.up = usable(first(w.up), dtype, up_);
    first_.up_bias = usable(bias(w.up_bias), dtype, up_bias_);
  }
  second_ = usable(w.layout == WeightLayout::kInOut ? rows_of(w.down, part.begin, part.size)
                                                    : columns_of(w.down, part.begin, part.size),
                   dtype, down_);
  epilogue_.bias = usable(w.down_bias, dtype, down_bias_);
  place();
  if (!world.on_gpu()) comm_ = std::make_unique<GatherAlone>(world, x.rows, w.hidden, dtype, Plan{});
  for (int fused = 0; fused < 2; ++fused) {
    Plan one = plan;
    one.fused = fused == 1;
    gather_[fused] = std::make_unique<AllGatherGemm>(world, gather_shape(), one);
    scatter_[fused] = std::make_unique<GemmReduceScatter>(world, sum_shape(), one);
  }
}

AllGatherGemm::Shape Mlp::gather_shape() const {
  bool const gated = weights_.gated();
  return {m_, weights_.hidden, dtype_, weights_.intermediate * (gated ? 2 : 1), layout_, gated};
}
GemmReduceScatter::Shape Mlp::sum_shape() const {
  return {m_, weights_.hidden, dtype_, weights_.intermediate, layout_};
}

void Mlp::place() {
  there_ = {x_, hidden_, second_, y_, first_, epilogue_};
  if (!world_.on_gpu()) return;
  there_.x = placed_.place(x_), there_.hidden = placed_.place(hidden_), there_.y = placed_.place(y_);
  auto copied = [&](Tensor const& t) { return t ? placed_.place(converted(t, dtype_)) : t; };
  there_.second = copied(second_), there_.epilogue.bias = copied(epilogue_.bias);
  Linear& first = there_.first;
  first.out = there_.hidden, first.up = {}, first.up_bias = {};
  if (first_.up) {
    first.weight = placed_.place(joined(first_.weight, first_.up, layout_ == WeightLayout::kOutIn, dtype_));
    if (first_.bias) first.bias = placed_.place(joined(first_.bias, first_.up_bias, false, dtype_));
  } else {
    first.weight = copied(first_.weight), first.bias = copied(first_.bias);
  }
}

void Mlp::run(bool fused) {
  Stream const stream = placed_.stream();
  gather_[fused]->run(m_, there_.x, std::span(&there_.first, 1), {}, stream);
  scatter_[fused]->run(m_, there_.hidden, there_.second, layout_, there_.y, there_.epilogue, stream);
}

void Mlp::both(PlainGemm& first, PlainGemm& second) {
  first.run(gemm_x_, first_);
  Linear down;
  down.weight = second_, down.out = gemm_y_, down.layout = layout_;
  second.run(hidden_, down);
}

Subject Mlp::subject() {
  Subject subject;
  subject.run = [this](bool fused) { run(fused); };
  subject.gemms = {{"flux", [this] { both(tiled_, tiled_); }},
                   {"eigen", [this] { both(whole_first_, whole_second_); }}};
  subject.comm = [this] {
    comm_->run();
    comm_->run();  // the scatter moves as many bytes as the gather
  };
  subject.sent_bytes = 2 * GatherAlone::sent_bytes(m_, weights_.hidden, dtype_, world_.size());
  return subject;
}

void Mlp::record(Timeline* timeline) {
  gather_[1]->record(timeline);
  scatter_[1]->record(timeline);
}

int64_t Mlp::shared_bytes() const {
  return AllGatherGemm::shared_bytes(gather_shape(), world_.size(), gather_[1]->plan()) +
         GemmReduceScatter::shared_bytes(sum_shape(), world_.size(), scatter_[1]->plan());
}

int64_t Mlp::memory_bytes() const {
  return AllGatherGemm::memory(world_, gather_shape(), gather_[1]->plan()).total() +
         GemmReduceScatter::memory(world_, sum_shape(), scatter_[1]->plan()).total();
}

double Mlp::error(int64_t most) {
  std::memset(hidden_.view().data, 0xff, hidden_.view().bytes());
  std::memset(y_.view().data, 0xff, y_.view().bytes());
  placed_.copy(hidden_, there_.hidden), placed_.copy(y_, there_.y);
  world_.barrier();  // ranks of one GPU: nobody copies while another's call waits for it
  run(true);
  placed_.copy(there_.y, y_);
  world_.check();
  Part const mine = part_of_rows(m_, world_.rank(), world_.size());
  Deviation deviation;
  MlpWeights const& w = weights_;
  // A block of rows at a time: each pass widens the whole weights once.
  std::vector<int64_t> const rows = sampled_rows(mine.size, most / world_.size() + 1);
  Matrix64 x{static_cast<int64_t>(rows.size()), w.hidden, {}};
  for (int64_t r : rows) {
    Matrix64 const row = widened(rows_of(x_.view(), r, 1));
    x.values.insert(x.values.end(), row.values.begin(), row.values.end());
  }
  Matrix64 up = product(x, w.up, layout_), gate;
  if (w.up_bias) add_row(up, w.up_bias);
  if (w.gated()) {
    gate = product(x, w.gate, layout_);
    if (w.gate_bias) add_row(gate, w.gate_bias);
    activate(gate, w.activation, &up);
  } else {
    activate(up, w.activation);
  }
  Matrix64 y = product(w.gated() ? gate : up, w.down, layout_);
  if (w.down_bias) add_row(y, w.down_bias);
  for (size_t i = 0; i < rows.size(); ++i)
    deviation.add(rows_of(y_.view(), rows[i], 1), {1, y.columns, {y.row(i), y.row(i) + y.columns}});
  return relative_over_ranks(world_, deviation);
}

OwnedTensor Mlp::gathered() {
  OwnedTensor all(dtype_, m_, weights_.hidden);
  Tensor const there = placed_.place(all);
  AllGatherGemm gather(world_, {m_, weights_.hidden, dtype_});
  world_.barrier();
  gather.run(m_, there_.y, std::span<Linear const>(), there, placed_.stream());
  placed_.copy(there, all);
  return all;
}

}  // namespace flux::bench
