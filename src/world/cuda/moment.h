#pragma once
// Moments of streams on the GPU's clock: for timelines.
#include <cstdint>
#include <memory>

#include "flux/world.h"

struct CUevent_st;

namespace flux {

/// When a stream has come to where this was made.
class Moment {
 public:
  explicit Moment(Stream stream);
  ~Moment();
  Moment(Moment const&) = delete;

 private:
  friend class MomentClock;
  CUevent_st* event_ = nullptr;
};

/// Tells moments of any stream of this GPU in nanoseconds of %globaltimer, the clock that kernels read.
class MomentClock {
 public:
  /// Throws Error{kUnsupported} while `stream` is captured.
  explicit MomentClock(Stream stream);
  /// Of a moment that has come.
  int64_t ns(Moment const& moment) const;

 private:
  std::shared_ptr<int64_t> read_;  // pinned: the GPU's time at base_
  std::unique_ptr<Moment> base_;
};

}  // namespace flux
