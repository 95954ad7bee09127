#pragma once
// The beginning and the end of a call on GPUs: docs/protocol.md. Between them stand the kernels and copies of the call.
#include "tile/gate.h"

struct CUstream_st;

namespace flux {

/// The words by which the ranks hear of each other in a call, at each rank one for each peer.
struct CallWords {
  Symmetric<Word> credits, begun;
  Word digest = 0;
  Watch watch;
};

/// What came to a rank in a call, beside partial sums.
struct Inputs {
  Arrival arrival;                 // words null: none
  Word const* readable = nullptr;  // ours, one a source, or none
};

/// Waits for every peer's credit, takes it, and tells every peer of the call.
void enqueue_begin(CallWords const& call, CUstream_st* stream);
/// Tells every peer that this rank's rows may be read. `readable`: at each rank, one a source.
void enqueue_readable(CallWords const& call, Symmetric<Word> const& readable, CUstream_st* stream);
/// Waits until all of it is here.
void enqueue_wait(CallWords const& call, Inputs const& inputs, CUstream_st* stream);
/// Waits for a word that another rank sets, as await() does.
void enqueue_await(Word const* word, Word goal, Watch const& watch, Awaited what, int peer, int64_t row,
                   CUstream_st* stream);
/// Sets `count` words of ours behind what came from another node, unless the world has ended: then it may not be whole.
void enqueue_tell(Word* words, int count, Word goal, Watch const& watch, CUstream_st* stream);
/// Waits until all of it is here and every peer has begun the call; clears `count` words of ours; gives every peer the
/// credit to write this buffer again. A call that failed ends without credits.
void enqueue_finish(CallWords const& call, Inputs const& inputs, Word* words, int64_t count, CUstream_st* stream);

/// Writes the GPU's time in nanoseconds, the clock of timelines, to host memory that it reaches.
void enqueue_clock(int64_t* to, CUstream_st* stream);

/// Loads the kernels, as sm90::prepare does.
void prepare_calls();

}  // namespace flux
