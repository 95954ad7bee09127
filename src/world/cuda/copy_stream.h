#pragma once
// A stream of copies beside the caller's: on a GPU, what src/world/copy_engine.h is on the host.
#include <functional>
#include <memory>
#include <optional>
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
/// Waits on the host until all of the stream is done. Of the default stream, nullptr: what it copies and clears may
/// still be under way when it returns, from pageable memory its last part, and our streams do not wait for it.
void wait_for(Stream stream);
/// Now: zeros in GPU memory.
void clear_now(void* gpu, int64_t bytes);
/// Now: what lies in GPU memory.
void read_now(void* to, void const* gpu, int64_t bytes);

/// A copy and when it was made: for timelines. It began at `ready`, or when the copy before it ended, whichever was
/// later.
struct TimedCopy {
  Transfer transfer;
  std::shared_ptr<Moment> ready, end;  // ready null: at once
};

/// A stream of the current GPU, kept for whoever needs one next.
class KeptStream {
 public:
  KeptStream();
  ~KeptStream();
  KeptStream(KeptStream const&) = delete;
  operator Stream() const { return stream_; }

 private:
  int device_, number_ = 0;
  Stream stream_ = nullptr;
};

/// Makes `count` streams to keep on the current GPU, and uses each: what it gets from the driver with its first work is
/// not given while a kernel waits.
void keep_streams(int count, std::function<void(Stream)> const& first_work);

class CopyStream {
 public:
  /// On the current GPU. `apart`: words are waited for and set in streams beside the copies, which a copy engine then
  /// makes one right behind the other; otherwise all is in one stream.
  explicit CopyStream(bool apart = false);
  ~CopyStream();
  CopyStream(CopyStream const&) = delete;

  /// What is enqueued here from now on comes after what was enqueued on `caller` so far.
  void fork(Stream caller);
  /// What is enqueued on `caller` from now on comes after what was enqueued here so far.
  void join(Stream caller);
  /// From here on transfers wait by kernels, bounded as `watch` says: for words that other ranks set. A GEMM that waits
  /// for the copies leaves those kernels a multiprocessor. None: by the stream itself.
  void wait_by_kernels(std::optional<Watch> const& watch) { watch_ = watch; }
  /// A transfer without rows, which only sets a word, sets it behind the copy before it. `more`: another follows at
  /// once, and the words of the last copy are set behind it.
  void enqueue(std::span<Transfer const> transfers, bool more = false);
  /// The same, by other means: `enqueue` does it in one piece.
  void enqueue_timed(std::span<Transfer const> transfers, std::function<void()> const& enqueue);
  /// Keeps the times of each copy from now on; null: no more.
  void record(std::vector<TimedCopy>* to) { timed_ = to; }
  Stream stream() const { return copies_; }
  /// Where words are waited for: what comes behind this comes behind all waits so far, and no copy if there was one.
  Stream waits() const { return waiting_ ? *waits_ : copies_; }

 private:
  void wait(Transfer const& transfer, TimedCopy* timed);
  void copy(Transfer const& transfer, TimedCopy* timed);
  void tell();  // of the last copy, if its words are still to be set
  /// What is enqueued on `later` from now on comes after what was enqueued on `earlier` so far.
  void order(Stream earlier, Stream later, CUevent_st* by);

  KeptStream copies_;
  std::unique_ptr<KeptStream> waits_, words_;  // null: all is in copies_
  bool waiting_ = false, telling_ = false;     // whether they are forked
  std::optional<Watch> watch_;                 // of waits by kernels
  std::vector<Transfer> untold_;               // whose words are to be set behind the last copy
  size_t untold_time_ = 0;
  int turn_ = 0;
  CUevent_st *forked_ = nullptr, *ordered_ = nullptr, *copied_[2] = {};
  std::vector<TimedCopy>* timed_ = nullptr;
};

}  // namespace flux
