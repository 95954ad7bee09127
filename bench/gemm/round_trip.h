#pragma once
// Words sent to and fro between two GPUs.
#include "tile/signal.h"

struct CUstream_st;

namespace flux::bench {

/// One thread sets `theirs` to first, first + 1, ... `trips` times, and waits each time until `mine` has become the
/// same; who does not begin waits first. `first` is larger than all before, so that nothing is to be reset. Both may be
/// the same word: then a trip is a store that is read back. Ends by itself after seconds.
void round_trips(Word* theirs, Word* mine, Word first, int trips, bool begins, CUstream_st* stream);

}  // namespace flux::bench
