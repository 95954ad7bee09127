#pragma once
// Copies made by blocks of the GPU: for pieces so small that a copy engine takes longer to start than to copy, and for
// what a copy engine cannot do, adding on the way.
#include <span>

#include "flux/tensor.h"
#include "world/transfer.h"

struct CUstream_st;

namespace flux {

/// Words that a list of copies counts its blocks in: zero before and after.
inline constexpr int kCopyCounts = 32;

/// A list of copies for blocks of its own, which begin them in order.
struct BlockCopies {
  std::span<Transfer const> transfers;
  Word* counts = nullptr;  // [kCopyCounts], of no other list under way
};

/// Enqueues lists that go on beside each other, with `blocks` blocks each. Rows, strides and addresses are multiples of
/// 16 bytes; `dtype` is that of rows which are added to. A wait that fails ends its list: what comes after it is never
/// told. Throws Error.
void copy_by_blocks(std::span<BlockCopies const> lists, int blocks, DType dtype, Watch const& watch,
                    CUstream_st* stream);

/// Loads its kernel, as sm90::prepare does.
void prepare_copies_by_blocks();

}  // namespace flux
