#pragma once
// What one launch of the kernel is given beside schedule, gate and route: where the operands lie, and what the epilogue
// adds. A kernel parameter.
#include "engine/epilogue.h"
#include "engine/stamps.h"
#include "tile/place.h"

namespace flux::sm80 {

struct Operands {
  Symmetric<void const> a;  // by rank: [rows, k]
  int64_t a_stride;         // from row to row in 16 bits, as the weight's
  void const* b;            // [n, k] or [k, n]
  int64_t b_stride;
  // Bytes from what a thread asks for to what it asks for next: rows; weights, in one half of a warp's columns, from
  // gate to up and back; weights [in,out] of the next step of k.
  int64_t a_step, b_step, b_step_up, b_step_down, b_stage;
  Symmetric<void> c;  // by rank: [rows, columns]
  int64_t c_stride;
  int64_t k;    // elements
  int columns;  // of c
  int up;       // gated: the first up column of the weight
  Epilogue epilogue;
  float const *row_scales, *column_scales;  // of one byte: of all rows, and of the weight's columns; or none
  Stamps stamps;                            // where a timeline is asked for
};

}  // namespace flux::sm80
