#pragma once
// Tensor maps: how the copy engine of Hopper sees a matrix.
#include <cuda.h>

#include "flux/tensor.h"

namespace flux {

/// `slots` matrices of `rows` x `columns` elements of 2 bytes, rows `stride` elements and slots `slot_stride` elements
/// apart, seen in boxes. What lies beyond an extent reads as zero and is not written.
struct MatrixView {
  void const* data;
  DType dtype;  // bf16 or fp16
  int64_t columns, rows, stride;
  int box_columns, box_rows;
  bool swizzled;                       // rows of 128 bytes in shared memory, 16-byte units exchanged within 8 rows
  int64_t slots = 0, slot_stride = 0;  // slots 0: a plain matrix
};

/// Throws Error{kDevice} if the driver refuses it.
CUtensorMap tensor_map(MatrixView const& view);

}  // namespace flux
