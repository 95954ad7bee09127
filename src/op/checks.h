#pragma once
// Arguments are checked before anything starts; a message says what was given and what is allowed.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "flux/plan.h"
#include "flux/problem.h"

namespace flux {

template <class... Args>
void require(bool ok, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) throw Error(ErrorKind::kInvalid, fmt::format(format, std::forward<Args>(args)...));
}

/// What an operator is made for: up to `max_m` rows of `columns` elements (the shape's n or k), and a plan whose every
/// word is allowed.
inline void require_shape(int64_t max_m, std::string_view columns_name, int64_t columns, Plan const& plan) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1, kMostElements = int64_t{1} << 40;
  require(max_m >= 0 && max_m <= kMost && columns >= 0 && columns <= kMost, "m is {} and {} is {}; both are 0 to {}",
          max_m, columns_name, columns, kMost);
  require(max_m * columns <= kMostElements, "m is {} and {} is {}; an operator serves up to {} elements", max_m,
          columns_name, columns, kMostElements);
  parse_plan(to_string(plan));  // a plan need not have come from a line, but it must be one that can
}

inline void require_matrix(std::string_view what, Tensor const& t, DType dtype, int64_t rows, int64_t columns) {
  require(t.dtype == dtype, "{} is {}; this operator was made for {}", what, name(t.dtype), name(dtype));
  require(rows >= 0 && columns >= 0, "{} is [{}, {}]; sizes are 0 or more", what, t.rows, t.columns);
  require(t.rows == rows && t.columns == columns, "{} is [{}, {}]; this call needs [{}, {}]", what, t.rows, t.columns,
          rows, columns);
  require(t.rows <= 1 || t.stride >= t.columns, "{} has rows {} elements apart; rows of {} elements must not overlap",
          what, t.stride, t.columns);
  require(t.data != nullptr || rows * columns == 0, "{} has no data", what);
  require(reinterpret_cast<uintptr_t>(t.data) % static_cast<uintptr_t>(size_of(dtype)) == 0,
          "{} starts at an address that is no multiple of its element size {}", what, size_of(dtype));
}

inline void require_optional(std::string_view what, Tensor const& t, DType dtype, int64_t rows, int64_t columns) {
  if (t) require_matrix(what, t, dtype, rows, columns);
}

/// int8 and fp8: a weight's k lies in its rows, in whole units of 16 bytes.
inline void require_of_one_byte(DType dtype, WeightLayout layout, int64_t k) {
  if (size_of(dtype) != 1) return;
  require(layout == WeightLayout::kOutIn, "the weight is {}; of {} it is [out,in]: lay it out anew, once", name(layout),
          name(dtype));
  int64_t const unit = k_unit(dtype);
  require(k % unit == 0, "k is {} on this rank; of {} it is a multiple of {}, the nearest is {}", k, name(dtype), unit,
          std::max((k + unit / 2) / unit, int64_t{1}) * unit);
}

/// `m` rows of the call, `n` columns of the weight.
inline void require_scales(Scales const& scales, DType dtype, int64_t m, int64_t n) {
  require(size_of(dtype) == 1 || (!scales.rows && !scales.columns),
          "scales are given with {}; only int8 and fp8 have any", name(dtype));
  require_optional("the vector of row scales", scales.rows, DType::kF32, 1, m);
  require_optional("the vector of column scales", scales.columns, DType::kF32, 1, n);
}

/// x [m, k_r] and weight [n, k_r] or [k_r, n] of GEMM+RS and GEMM+AR.
inline void require_row_parallel(int64_t m, int64_t max_m, int64_t n, DType dtype, Tensor const& x,
                                 Tensor const& weight, WeightLayout layout) {
  require(m >= 0 && m <= max_m, "m is {}; this operator was made for 0 to {} rows", m, max_m);
  bool const out_in = layout == WeightLayout::kOutIn;
  int64_t const k = out_in ? weight.columns : weight.rows;
  require_matrix("the weight", weight, dtype, out_in ? n : k, out_in ? k : n);
  require_matrix("x", x, dtype, m, k);
  require_of_one_byte(dtype, layout, k);
}

/// What the sums end in: `rows` rows of n, of the results' dtype.
inline void require_summed(int64_t rows, int64_t n, DType dtype, Tensor const& out, SumEpilogue const& e) {
  require_matrix("the output", out, dtype, rows, n);
  require_optional("the bias", e.bias, dtype, 1, n);
  require_optional("the residual", e.residual, dtype, rows, n);
  require_optional("the norm's weight", e.norm_weight, dtype, 1, n);
  require(!e.normed || e.norm_weight, "a normed output is given without the norm's weight; give both or neither");
  require(e.norm_epsilon >= 0, "the norm's epsilon is {}; it is 0 or more", e.norm_epsilon);
  if (e.norm_weight) require_matrix("the normed output", e.normed, dtype, rows, n);
}

}  // namespace flux
