#include "world/copy_engine.h"

#include <sys/prctl.h>

#include <cstring>

namespace flux {

void LinkClock::pass(Link const& link, int64_t begin_ns, int64_t bytes) {
  if (link.gbps <= 0) return;
  int64_t const wire_ns = static_cast<int64_t>(link.latency_us * 1e3 + static_cast<double>(bytes) / link.gbps);
  int64_t const end = book(begin_ns, wire_ns);
  using Time = std::chrono::steady_clock::time_point;
  if (now_ns() < end) std::this_thread::sleep_until(Time(std::chrono::nanoseconds(end)));
}

bool copy_rows(Transfer const& t, Watch const&) {
  if (!t.to) return true;
  if (t.row_bytes == t.to_stride && t.row_bytes == t.from_stride) {
    std::memcpy(t.to, t.from, t.rows * t.row_bytes);
  } else {
    for (int64_t i = 0; i < t.rows; ++i) std::memcpy(t.to + i * t.to_stride, t.from + i * t.from_stride, t.row_bytes);
  }
  return true;
}

CopyEngine::CopyEngine(LinkClock& clock, Carrier carry)
    : clock_(clock), carry_(std::move(carry)), thread_([this] { serve(); }) {}

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
  for (Transfer const& t : batch.transfers) {
    if (t.after && !await(t.after, t.goal, batch.watch, t.awaited, t.awaited_from, t.row)) return;
    if (aborted(batch.watch)) return;
    int64_t const begin = now_ns();
    if (t.clear_after) store_release(t.after, 0);
    if (!carry_(t, batch.watch)) return;
    clock_.pass(batch.link, begin, t.rows * t.row_bytes);
    if (batch.spans) batch.spans->push_back({begin, now_ns(), t.row, t.rows, t.peer});
    if (t.set) store_release(t.set, t.goal);  // after the copy: whoever acquires the word sees the rows
  }
}

}  // namespace flux
