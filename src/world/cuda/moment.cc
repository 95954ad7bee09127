#include "world/cuda/moment.h"

#include <cuda_runtime.h>

#include "kernel/call.h"
#include "kernel/check.h"

namespace flux {

Moment::Moment(Stream stream) {
  check_cuda(cudaEventCreate(&event_), "an event");
  check_cuda(cudaEventRecord(event_, stream), "recording a moment");
}
Moment::~Moment() { cudaEventDestroy(event_); }

MomentClock::MomentClock(Stream stream) {
  cudaStreamCaptureStatus capturing;
  check_cuda(cudaStreamIsCapturing(stream, &capturing), "whether a stream is captured");
  if (capturing != cudaStreamCaptureStatusNone)
    throw Error(ErrorKind::kUnsupported,
                "a call that is captured cannot be recorded: a recorded call waits for its end; record an eager one");
  int64_t* read = nullptr;
  check_cuda(cudaHostAlloc(&read, sizeof *read, cudaHostAllocMapped), "pinned host memory");
  read_ = {read, [](int64_t* at) { cudaFreeHost(at); }};
  enqueue_clock(read, stream);
  base_ = std::make_unique<Moment>(stream);
}

int64_t MomentClock::ns(Moment const& moment) const {
  float ms = 0;
  check_cuda(cudaEventElapsedTime(&ms, base_->event_, moment.event_), "the time of an event");
  return *read_ + static_cast<int64_t>(1e6 * static_cast<double>(ms));
}

}  // namespace flux
