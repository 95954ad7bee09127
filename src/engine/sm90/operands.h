#pragma once
// What one launch of the Hopper kernel is given beside schedule, gate and route: where the operands lie, as tensor
// maps, and what the epilogue adds. A kernel parameter.
#include <cuda.h>

#include "engine/epilogue.h"
#include "engine/stamps.h"
#include "flux/plan.h"
#include "tile/place.h"

namespace flux::sm90 {

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
