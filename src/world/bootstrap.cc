#include "world/bootstrap.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

namespace flux {

std::vector<std::string> MeetingPoint::all_gather(int rank, std::string_view bytes, double limit_seconds) {
  std::unique_lock lock(mutex_);
  if (cancelled_) throw Error(ErrorKind::kTimeout, "another rank failed before all ranks met; see its own message");
  mine_[rank] = bytes;
  int64_t const round = round_;
  if (++present_ == ranks_) {
    result_ = std::make_shared<std::vector<std::string>>(mine_);
    present_ = 0;
    ++round_;
    met_.notify_all();
    return *result_;
  }
  auto const limit = std::chrono::duration<double>(limit_seconds);
  if (!met_.wait_for(lock, limit, [&] { return round_ != round || cancelled_; })) {
    int const missing = ranks_ - present_;
    cancelled_ = true;
    met_.notify_all();
    throw Error(ErrorKind::kTimeout,
                fmt::format("rank {} waited {} s for {} other rank(s) to join", rank, limit_seconds, missing));
  }
  if (round_ == round)
    throw Error(ErrorKind::kTimeout, "another rank failed before all ranks met; see its own message");
  return *result_;  // the next round cannot complete without us, so the result is still this round's
}

void MeetingPoint::cancel() {
  std::lock_guard lock(mutex_);
  cancelled_ = true;
  met_.notify_all();
}

namespace {

class CallableBootstrap final : public Bootstrap {
 public:
  CallableBootstrap(int rank, int size, AllGatherBytes gather) : rank_(rank), size_(size), gather_(std::move(gather)) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::vector<std::string> all_gather(std::string_view mine, double) override {
    auto all = gather_(mine);
    if (static_cast<int>(all.size()) != size_)
      throw Error(ErrorKind::kInvalid,
                  fmt::format("the bootstrap's all_gather returned {} entries for {} ranks", all.size(), size_));
    return all;
  }

 private:
  int rank_, size_;
  AllGatherBytes gather_;
};

}  // namespace

std::unique_ptr<Bootstrap> bootstrap_from(int rank, int size, AllGatherBytes all_gather) {
  if (size < 1 || rank < 0 || rank >= size)
    throw Error(ErrorKind::kInvalid, fmt::format("rank {} of {} is not a rank: 0 <= rank < size", rank, size));
  return std::make_unique<CallableBootstrap>(rank, size, std::move(all_gather));
}

std::unique_ptr<Bootstrap> bootstrap_from_environment() {
  if (std::getenv("FLUX_BOOTSTRAP")) return bootstrap_from_launcher();
  for (char const* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(variable)) return bootstrap_from_mpi();
  return nullptr;
}

}  // namespace flux
