#pragma once
// The bootstraps that need more than a line.
#include <condition_variable>
#include <map>
#include <mutex>

#include "flux/world.h"

namespace flux {

/// Where the threads of one process meet. Shared by the ranks' ThreadBootstraps.
class MeetingPoint {
 public:
  explicit MeetingPoint(int ranks) : ranks_(ranks), mine_(ranks) {}
  std::vector<std::string> all_gather(int rank, std::string_view bytes, double limit_seconds);
  /// Ends every present and later meeting: a rank failed and will not come.
  void cancel();

 private:
  int ranks_;
  std::mutex mutex_;
  std::condition_variable met_;
  std::vector<std::string> mine_;
  std::shared_ptr<std::vector<std::string>> result_;
  int present_ = 0;
  int64_t round_ = 0;
  bool cancelled_ = false;
};

class ThreadBootstrap final : public Bootstrap {
 public:
  ThreadBootstrap(std::shared_ptr<MeetingPoint> point, int rank, int size)
      : point_(std::move(point)), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::vector<std::string> all_gather(std::string_view mine, double limit) override {
    return point_->all_gather(rank_, mine, limit);
  }

 private:
  std::shared_ptr<MeetingPoint> point_;
  int rank_, size_;
};

}  // namespace flux
