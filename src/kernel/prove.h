#pragma once
// What a link must carry, by kernels: stores and loads at another GPU's memory, and a word behind the stores.
#include "tile/signal.h"

struct CUstream_st;

namespace flux {

/// Element i of a pattern.
FLUX_HD constexpr Word pattern(Word seed, int64_t i) { return seed ^ static_cast<Word>(i) * 2654435761u; }

/// Writes `count` elements to `to`, then `word`, all by stores of a kernel.
void enqueue_pattern(Word* to, int64_t count, Word seed, Word* word, Word value, CUstream_st* stream);
/// Reads `count` elements at `from` by loads of a kernel. `*wrong` becomes 0: all is as written; 1: elements differ;
/// 2: `word` has not its value.
void enqueue_check(Word const* from, int64_t count, Word seed, Word const* word, Word value, Word* wrong,
                   CUstream_st* stream);

}  // namespace flux
