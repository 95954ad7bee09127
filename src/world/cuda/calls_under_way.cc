#include "world/cuda/calls_under_way.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "kernel/check.h"
#include "world/cuda/peer_memory.h"

namespace flux {
namespace {

bool is_captured(Stream stream) {
  cudaStreamCaptureStatus status;
  check_cuda(cudaStreamIsCapturing(stream, &status), "whether a stream is captured");
  return status != cudaStreamCaptureStatusNone;
}

/// Also while another stream is captured, which does not forbid this question. After an error of the GPU nothing is
/// under way any more.
bool is_over(cudaEvent_t end) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  check_cuda(cudaThreadExchangeStreamCaptureMode(&mode), "asking for a call's end");
  cudaError_t const state = cudaEventQuery(end);
  cudaThreadExchangeStreamCaptureMode(&mode);
  if (state != cudaErrorNotReady) return true;
  cudaGetLastError();
  return false;
}

}  // namespace

CallsUnderWay::CallsUnderWay(double limit_seconds) : limit_seconds_(limit_seconds) {
  for (cudaEvent_t& end : ends_) check_cuda(cudaEventCreateWithFlags(&end, cudaEventDisableTiming), "an event");
}

CallsUnderWay::~CallsUnderWay() {
  drain();
  if (gave_up_on_gpu()) return;
  for (cudaEvent_t end : ends_) cudaEventDestroy(end);
}

void CallsUnderWay::enter(Stream stream, bool shared) {
  bool const elsewhere = calls_ > 0 && stream_ != stream;
  if (is_captured(stream)) {
    bool const captured_elsewhere = captured_ && captured_ != stream;
    if (shared && (captured_elsewhere || (elsewhere && !is_over(last()))))
      throw Error(
          ErrorKind::kInvalid,
          "operators that share a workspace are captured on one stream, and when their calls on others are over; "
          "give the operators of each stream a workspace of their own");
    captured_ = stream;
    return;
  }
  while (!is_over(ends_[calls_ % kMost])) std::this_thread::sleep_for(std::chrono::microseconds(20));
  if (elsewhere) check_cuda(cudaStreamWaitEvent(stream, last()), "coming after the call before");
}

void CallsUnderWay::leave(Stream stream) {
  if (is_captured(stream)) return;
  captured_ = nullptr, stream_ = stream, ++calls_;
  check_cuda(cudaEventRecord(last(), stream), "marking a call's end");
}

void CallsUnderWay::drain() {
  if (calls_ == 0 || gave_up_on_gpu()) return;
  constexpr double kBeyond = 5;  // seconds: what a call does after its last wait
  auto const deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_seconds_ + kBeyond);
  for (cudaEvent_t end : ends_)
    while (!is_over(end)) {
      if (std::chrono::steady_clock::now() > deadline) {
        give_up_on_gpu();
        fmt::print(stderr,
                   "flux: an operator goes away while its call has been under way for {:g} s; is the stream held up by "
                   "other work? Its memory is kept to the end of the process\n",
                   limit_seconds_ + kBeyond);
        return;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

}  // namespace flux
