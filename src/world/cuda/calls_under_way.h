#pragma once
// The calls on one set of buffers that are enqueued and not yet over: the host runs ahead of them so far and no
// further, and nothing that they use goes away before they are over.
#include <array>
#include <cstdint>

#include "flux/world.h"

struct CUevent_st;

namespace flux {

class CallsUnderWay {
 public:
  /// More than a host enqueues on a stream that is held to be timed, fewer than launches fit into the GPU's queue: a
  /// launch that waits there holds a lock, and ranks that are threads could not enqueue what it waits for.
  static constexpr int kMost = 64;

  explicit CallsUnderWay(double limit_seconds);
  ~CallsUnderWay();
  CallsUnderWay(CallsUnderWay const&) = delete;

  /// Before a call is enqueued: waits on the host until fewer than kMost are under way, and lets the call come after
  /// the one before, also from another stream. Not where `stream` is captured: then, if operators share the buffers,
  /// throws Error{kInvalid} where calls before it may still be under way on another stream.
  void enter(Stream stream, bool shared);
  /// Behind the call.
  void leave(Stream stream);
  /// Waits until all are over. Calls that are captured are not among them. All end within the limit of their waits; if
  /// one does not, nothing of this GPU is freed any more.
  void drain();

 private:
  CUevent_st*& last() { return ends_[(calls_ - 1) % kMost]; }

  double limit_seconds_;
  std::array<CUevent_st*, kMost> ends_{};  // of the last calls, in turn
  int64_t calls_ = 0;
  Stream stream_ = nullptr, captured_ = nullptr;  // of the last call that was enqueued, that was captured
};

}  // namespace flux
