#pragma once
// The host engine: the readable reference of what the GPU engines do, and the default where there is no GPU. One object
// is one worker of one rank.
#include <algorithm>
#include <vector>

#include "engine/host/element.h"
#include "engine/host/launch.h"
#include "engine/host/multiply.h"
#include "tile/loop.h"

namespace flux::host {

/// When a worker did what, for the timeline.
struct Stamp {
  Phase phase;
  Tile tile;
  int64_t begin_ns, end_ns;
};

template <class T>
class Engine {
 public:
  static constexpr bool kRoles = false;

  Engine(Launch const& launch, int worker, int workers, std::vector<Stamp>* stamps)
      : launch_(launch), worker_(worker), workers_(workers), stamps_(stamps) {
    size_t const width = launch.block_n * (launch.up ? 2 : 1);
    accumulator_.resize(launch.block_m * width);
    stride_ = static_cast<int64_t>(width);
  }

  int first() const { return worker_; }
  int stride() const { return workers_; }

  template <class F>
  bool timed(Phase phase, Tile tile, F&& f) {
    if (!stamps_) return f();
    int64_t const begin = now_ns();
    bool const ok = f();
    stamps_->push_back({phase, tile, begin, now_ns()});
    return ok;
  }

  bool check(bool ok) { return ok_ = ok_ && ok; }
  static Party party() { return {}; }
  bool admit(bool ok) { return check(ok); }

  // The rows and their weights are used where they lie if they need no conversion.
  void load(Place from, Tile tile, Rows k) {
    if (k.first == 0) std::fill(accumulator_.begin(), accumulator_.end(), T(0));
    void const* rows = element(launch_.a.at(from.rank), launch_.weight.dtype, from.row * launch_.a_stride + k.first);
    a_ = widened(rows, launch_.a_stride, tile.rows, k.count, a_panel_);
    b_ = weight_block(launch_.weight, tile, k, b_panel_);
    if (launch_.up) up_ = weight_block(launch_.up, tile, k, up_panel_);
  }

  void multiply(Tile tile, Rows k) {
    int64_t const n = width(tile);
    multiply_add(a_, b_, launch_.layout, accumulator_.data(), stride_, tile.rows, n, k.count);
    if (launch_.up)
      multiply_add(a_, up_, launch_.layout, accumulator_.data() + launch_.block_n, stride_, tile.rows, n, k.count);
    if (k.end() == launch_.k()) scale(tile);
  }

  void store(Place to, int skip, Tile tile, Write write) {
    int64_t const column = int64_t{1} * tile.n * launch_.block_n, n = width(tile);
    for (int64_t i = 0; i < to.rows; ++i) {
      T* const row = accumulator_.data() + (skip + i) * stride_;
      if (launch_.bias) add(row, launch_.bias.data, launch_.bias.dtype, column, n);
      if (launch_.up_bias) add(row + launch_.block_n, launch_.up_bias.data, launch_.up_bias.dtype, column, n);
      activate(launch_.activation, row, launch_.up ? row + launch_.block_n : nullptr, n);
      if (write == Write::kRelay)
        add(row, launch_.inbox, launch_.c_dtype, (tile.row + skip + i) * launch_.c_stride + column, n);
      void* const out = element(launch_.c.at(to.rank), launch_.c_dtype, (to.row + i) * launch_.c_stride + column);
      if (write == Write::kAdd)
        add_atomically(row, out, launch_.c_dtype, n);
      else
        narrow(row, out, launch_.c_dtype, n);
    }
  }

  void finish(Tile, bool) {}

  template <class F>
  void publish(F&& announce) {
    announce();  // plain stores precede the release of the word
  }

 private:
  int64_t width(Tile tile) const {
    return std::min<int64_t>(launch_.block_n, launch_.columns - int64_t{1} * tile.n * launch_.block_n);
  }

  Operand<T> widened(void const* rows, int64_t stride, int64_t count, int64_t columns, std::vector<T>& panel) {
    DType const dtype = launch_.weight.dtype;
    if (size_of(dtype) == sizeof(T)) return {static_cast<T const*>(rows), stride};
    panel.resize(count * columns);
    for (int64_t i = 0; i < count; ++i)
      widen(element(rows, dtype, i * stride), dtype, panel.data() + i * columns, columns);
    return {panel.data(), columns};
  }

  Operand<T> weight_block(Tensor const& w, Tile tile, Rows k, std::vector<T>& panel) {
    int64_t const column = int64_t{1} * tile.n * launch_.block_n;
    if (launch_.layout == WeightLayout::kOutIn)
      return widened(element(w.data, w.dtype, column * w.stride + k.first), w.stride, width(tile), k.count, panel);
    return widened(element(w.data, w.dtype, k.first * w.stride + column), w.stride, k.count, width(tile), panel);
  }

  // Sums of one byte each stand for more or less than they are.
  void scale(Tile tile) {
    int64_t const column = int64_t{1} * tile.n * launch_.block_n, n = width(tile);
    auto at = [](Tensor const& scales, int64_t i) {
      return scales ? T(static_cast<float const*>(scales.data)[i]) : T(1);
    };
    auto scale_by = [&](Tensor const& columns, int64_t offset) {
      if (!launch_.scales.rows && !columns) return;
      for (int64_t i = 0; i < tile.rows; ++i) {
        T const of_row = at(launch_.scales.rows, tile.row + i);
        T* const row = accumulator_.data() + i * stride_ + offset;
        for (int64_t j = 0; j < n; ++j) row[j] *= of_row * at(columns, column + j);
      }
    };
    scale_by(launch_.scales.columns, 0);
    if (launch_.up) scale_by(launch_.up_scale, launch_.block_n);
  }

  void add(T* row, void const* base, DType dtype, int64_t index, int64_t n) {
    row_.resize(launch_.block_n);
    widen(element(base, dtype, index), dtype, row_.data(), n);
    for (int64_t j = 0; j < n; ++j) row[j] += row_[j];
  }

  Launch const& launch_;
  int worker_, workers_;
  std::vector<Stamp>* stamps_;
  bool ok_ = true;
  int64_t stride_;
  std::vector<T> accumulator_, a_panel_, b_panel_, up_panel_, row_;
  Operand<T> a_{}, b_{}, up_{};
};

}  // namespace flux::host
