#pragma once
// A stream of copies beside the caller's: on a GPU, what src/world/copy_engine.h is on the host.
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "flux/world.h"
#include "world/copy_engine.h"
#include "world/cuda/moment.h"

struct CUevent_st;

namespace flux {

/// Enqueues one transfer: the wait for its word, the copy, the word behind it. The word is set by a stream write, which
/// needs no multiprocessor and comes after everything before it in the stream is visible.
void enqueue(Transfer const& transfer, Stream stream);
/// Enqueues a zero fill.
void enqueue_zeros(void* data, int64_t bytes, Stream stream);
/// Enqueues the same value for `count` words.
void enqueue_words(Word* words, Word value, int64_t count, Stream stream);
/// Now: initial values of words, before anybody uses them.
void write_now(Word* word, Word value);
/// Waits on the host until all of the stream is done.
void wait_for(Stream stream);
/// Now: what lies in GPU memory.
void read_now(void* to, void const* gpu, int64_t bytes);

/// A copy and when it was made: for timelines.
struct TimedCopy {
  Transfer transfer;
  std::shared_ptr<Moment> begin, end;
};

class CopyStream {
 public:
  /// On the current GPU.
  CopyStream();
  ~CopyStream();
  CopyStream(CopyStream const&) = delete;

  /// What is enqueued here from now on comes after what was enqueued on `caller` so far.
  void fork(Stream caller);
  /// What is enqueued on `caller` from now on comes after what was enqueued here so far.
  void join(Stream caller);
  void enqueue(std::span<Transfer const> transfers);
  /// The same, by other means: `enqueue` does it in one piece.
  void enqueue_timed(std::span<Transfer const> transfers, std::function<void()> const& enqueue);
  /// Keeps the times of each copy from now on; null: no more.
  void record(std::vector<TimedCopy>* to) { timed_ = to; }
  Stream stream() const { return stream_; }

 private:
  int device_;
  Stream stream_ = nullptr;
  CUevent_st *forked_ = nullptr, *joined_ = nullptr;
  std::vector<TimedCopy>* timed_ = nullptr;
};

}  // namespace flux
