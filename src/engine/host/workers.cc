#include "engine/host/workers.h"

namespace flux::host {

Workers::Workers(int count) {
  for (int w = 1; w < count; ++w) threads_.emplace_back([this, w] { serve(w); });
}

Workers::~Workers() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Workers::run(std::function<void(int)> const& f) {
  {
    std::lock_guard lock(mutex_);
    job_ = &f;
    left_ = static_cast<int>(threads_.size());
    ++round_;
  }
  start_.notify_all();
  f(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return left_ == 0; });
}

void Workers::serve(int worker) {
  std::unique_lock lock(mutex_);
  for (int64_t seen = 0;;) {
    start_.wait(lock, [&] { return stop_ || round_ != seen; });
    if (stop_) return;
    seen = round_;
    auto const& job = *job_;
    lock.unlock();
    job(worker);
    lock.lock();
    if (--left_ == 0) done_.notify_one();
  }
}

}  // namespace flux::host
