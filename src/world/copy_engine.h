#pragma once
// A thread that stands for a GPU's copy engine: it moves blocks of rows, one after another, and sets a word behind
// each. With a declared link it moves the data, then waits out the time the link would have needed, without using a
// core. How a block is moved can be another's business: through a socket (rail.h), or as a sum (src/op/node_sums.h).
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "flux/world.h"
#include "world/transfer.h"

namespace flux {

/// The time a rank's declared link is taken. All copy engines of a rank share it, as they would share the wire.
class LinkClock {
 public:
  /// Books `duration_ns` from `now_ns` or from when the link is free; returns the end.
  int64_t book(int64_t now_ns, int64_t duration_ns) {
    std::lock_guard lock(mutex_);
    return free_ns_ = std::max(free_ns_, now_ns) + duration_ns;
  }
  /// Waits out the time that `bytes`, begun at `begin_ns`, take on `link`, without using a core.
  void pass(Link const& link, int64_t begin_ns, int64_t bytes);

 private:
  std::mutex mutex_;
  int64_t free_ns_ = 0;
};

/// When a transfer was under way, for the timeline.
struct TransferSpan {
  int64_t begin_ns, end_ns, row, rows;
  int peer;
};

/// Moves the rows of a transfer. False: given up, and the world has ended.
using Carrier = std::function<bool(Transfer const&, Watch const&)>;
bool copy_rows(Transfer const& transfer, Watch const& watch);

class CopyEngine {
 public:
  explicit CopyEngine(LinkClock& clock, Carrier carry = copy_rows);
  ~CopyEngine();

  /// Transfers of one call. Never blocks.
  void enqueue(std::vector<Transfer> transfers, Link link, Watch const& watch,
               std::vector<TransferSpan>* spans = nullptr);
  /// Returns when all that was enqueued is done or given up.
  void drain();

 private:
  struct Batch {
    std::vector<Transfer> transfers;
    Link link;
    Watch watch;
    std::vector<TransferSpan>* spans;
  };
  void serve();
  void perform(Batch const& batch);

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<Batch> queue_;
  bool busy_ = false, stop_ = false;
  LinkClock& clock_;
  Carrier carry_;
  std::thread thread_;
};

}  // namespace flux
