#include "world/copy_engine.h"

#include <sys/prctl.h>

#include <cstring>

namespace flux {

CopyEngine::CopyEngine(LinkClock& clock) : clock_(clock), thread_([this] { serve(); }) {}

CopyEngine::~CopyEngine() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void CopyEngine::enqueue(std::vector<Transfer> transfers, Link link, Watch const& watch,
                         std::vector<TransferSpan>* spans) {
  if (transfers.empty()) return;
  {
    std::lock_guard lock(mutex_);
    queue_.push_back({std::move(transfers), link, watch, spans});
  }
  wake_.notify_all();
}

void CopyEngine::drain() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return queue_.empty() && !busy_; });
}

void CopyEngine::serve() {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // nanoseconds: the declared link's times are short
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Batch batch = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    perform(batch);
    lock.lock();
    busy_ = false;
    idle_.notify_all();
  }
}

void CopyEngine::perform(Batch const& batch) {
  using std::chrono::nanoseconds;
  for (Transfer const& t : batch.transfers) {
    if (t.after && !await(t.after, t.goal, batch.watch, t.awaited, t.awaited_from, t.row)) return;
    if (aborted(batch.watch)) return;
    int64_t const begin = now_ns();
    if (t.clear_after) store_release(t.after, 0);
    if (t.to) {
      if (t.row_bytes == t.to_stride && t.row_bytes == t.from_stride) {
        std::memcpy(t.to, t.from, t.rows * t.row_bytes);
      } else {
        for (int64_t i = 0; i < t.rows; ++i)
          std::memcpy(t.to + i * t.to_stride, t.from + i * t.from_stride, t.row_bytes);
      }
    }
    if (batch.link.gbps > 0) {
      double const wire_ns = batch.link.latency_us * 1e3 + static_cast<double>(t.rows * t.row_bytes) / batch.link.gbps;
      int64_t const end = clock_.book(begin, static_cast<int64_t>(wire_ns));
      if (now_ns() < end) std::this_thread::sleep_until(std::chrono::steady_clock::time_point(nanoseconds(end)));
    }
    if (batch.spans) batch.spans->push_back({begin, now_ns(), t.row, t.rows, t.peer});
    if (t.set) store_release(t.set, t.goal);  // after the copy: whoever acquires the word sees the rows
  }
}

}  // namespace flux
