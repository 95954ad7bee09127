#pragma once
// The workers of one rank: threads that stand for the blocks of a GPU. One worker is the calling thread itself.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace flux::host {

class Workers {
 public:
  explicit Workers(int count);
  ~Workers();
  int count() const { return static_cast<int>(threads_.size()) + 1; }

  /// Runs f(worker) on every worker; returns when all are done. f does not throw.
  void run(std::function<void(int)> const& f);

 private:
  void serve(int worker);
  std::mutex mutex_;
  std::condition_variable start_, done_;
  std::function<void(int)> const* job_ = nullptr;
  int64_t round_ = 0;
  int left_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace flux::host
