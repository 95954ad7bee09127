#pragma once
// What one launch of the Hopper kernel is given beside schedule, gate and route: where the operands lie, as tensor
// maps, and what the epilogue adds. A kernel parameter.
#include <cuda.h>

#include "engine/sm90/stamps.h"
#include "flux/plan.h"
#include "tile/place.h"

namespace flux::sm90 {

/// The curve x · sigmoid(x · (first + third·x² + fifth·x⁴)). All activations are one of these: exactly SiLU, quick
/// GELU, the tanh form of GELU and, with a slope beyond all bounds, ReLU; within 3e-5 the erf form of GELU.
struct Curve {
  float first, third, fifth;
};

struct Epilogue {
  bool curved = false;
  Curve curve{};
  bool gated = false;              // a tile holds gate columns, then as many up columns
  void const* bias = nullptr;      // one for each weight column, of the operands' type
  void const* residual = nullptr;  // added last, of the operands' type
  int64_t residual_stride = 0;
};

struct Operands {
  CUtensorMap a[kMaxRanks];  // by rank: [rows, k]
  CUtensorMap b;             // [n, k] or [k, n]
  CUtensorMap c[kMaxRanks];  // by rank: [slots, rows of a slot, columns]; stores behind an extent are dropped
  Symmetric<void> c_rows;    // the same memory, for stores row by row
  StoreKind store;           // the instruction
  int64_t c_stride;          // elements from row to row
  int64_t slot_rows;         // from slot to slot
  Shards within;             // more than one: results that stay end where a shard does, c counts shards
  int columns;               // of c
  int a_rows;                // of one copy, from which blocks that share rows load their part
  int up;                    // gated: the first up column of the weight
  bool rows_to_come;         // the kernel before it in the stream still writes A
  Epilogue epilogue;
  Stamps stamps;  // where a timeline is asked for
};

}  // namespace flux::sm90
