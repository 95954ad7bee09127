#pragma once
// Copies by a kernel: what a copy engine does, with nothing to set up for each.
#include <array>
#include <cstdint>

#include "tile/signal.h"

struct CUstream_st;

namespace flux::bench {

/// Whole 16-byte words; `to` and `from` may lie in pinned host memory.
struct CopyOfRows {
  void* to = nullptr;
  void const* from = nullptr;
  int64_t bytes = 0;
};

/// What comes and what goes.
struct CopiesBothWays {
  std::array<CopyOfRows, kMaxRanks> in = {}, out = {};
};

/// All of them at once, each way by blocks of its own.
void copy_rows(CopiesBothWays const& copies, CUstream_st* stream);

/// What comes behind this on the stream may read the rows that `source` sent before it set the word to `goal`.
void wait_for_rows(Word const* word, Word goal, Watch const& watch, int source, CUstream_st* stream);

}  // namespace flux::bench
