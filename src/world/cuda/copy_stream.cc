#include "world/cuda/copy_stream.h"

#include <map>
#include <mutex>
#include <vector>

#include "kernel/check.h"
#include "world/cuda/driver.h"
#include "world/cuda/peer_memory.h"

namespace flux {
namespace {

void write_word(Stream stream, Word* word, Word value) {
  static auto const write = driver_function<decltype(&cuStreamWriteValue32)>("cuStreamWriteValue32");
  check_driver(write(stream, reinterpret_cast<CUdeviceptr>(word), value, CU_STREAM_WRITE_VALUE_DEFAULT),
               "setting a word behind a copy");
}

void wait_word(Stream stream, Word const* word, Word value) {
  static auto const wait = driver_function<decltype(&cuStreamWaitValue32)>("cuStreamWaitValue32");
  check_driver(wait(stream, reinterpret_cast<CUdeviceptr>(word), value, CU_STREAM_WAIT_VALUE_EQ),
               "waiting for a word before a copy");
}

/// `before` and `after` stand around the copy itself.
template <class Before, class After>
void enqueue_between(Transfer const& t, Stream stream, Before&& before, After&& after) {
  if (t.after) wait_word(stream, t.after, t.goal);
  if (t.clear_after) write_word(stream, t.after, 0);
  if (t.to && t.rows > 0 && t.row_bytes > 0) {
    before();
    if (t.row_bytes == t.to_stride && t.row_bytes == t.from_stride)
      check_cuda(cudaMemcpyAsync(t.to, t.from, t.rows * t.row_bytes, cudaMemcpyDefault, stream), "copying rows");
    else
      check_cuda(
          cudaMemcpy2DAsync(t.to, t.to_stride, t.from, t.from_stride, t.row_bytes, t.rows, cudaMemcpyDefault, stream),
          "copying rows");
    after();
  }
  if (t.set) write_word(stream, t.set, t.goal);
}

}  // namespace

void enqueue(Transfer const& t, Stream stream) {
  enqueue_between(
      t, stream, [] {}, [] {});
}

void enqueue_zeros(void* data, int64_t bytes, Stream stream) {
  if (bytes > 0) check_cuda(cudaMemsetAsync(data, 0, bytes, stream), "clearing sums");
}

void enqueue_words(Word* words, Word value, int64_t count, Stream stream) {
  static auto const fill = driver_function<decltype(&cuMemsetD32Async)>("cuMemsetD32Async");
  check_driver(fill(reinterpret_cast<CUdeviceptr>(words), value, count, stream), "filling words");
}

void write_now(Word* word, Word value) {
  check_cuda(cudaMemcpy(word, &value, sizeof value, cudaMemcpyHostToDevice), "writing a word");
}

namespace {

// Streams are kept for whoever needs one next. Each new one takes the next of the GPU's few hardware queues, in turn,
// and streams that share a queue hold each other up: ranks that share a GPU might wait for each other for ever.
struct IdleStreams {
  std::mutex mutex;
  std::map<int, std::vector<Stream>> of_device;
} idle;

int this_device() {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "which GPU");
  return device;
}

}  // namespace

void wait_for(Stream stream) { check_cuda(cudaStreamSynchronize(stream), "waiting for a stream"); }

void read_now(void* to, void const* gpu, int64_t bytes) {
  check_cuda(cudaMemcpy(to, gpu, bytes, cudaMemcpyDeviceToHost), "reading GPU memory");
}

CopyStream::CopyStream() : device_(this_device()) {
  {
    std::lock_guard lock(idle.mutex);
    auto& streams = idle.of_device[device_];
    if (!streams.empty()) stream_ = streams.back(), streams.pop_back();
  }
  if (!stream_) check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream for copies");
  for (cudaEvent_t* event : {&forked_, &joined_})
    check_cuda(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "an event");
}

CopyStream::~CopyStream() {
  if (gave_up_on_gpu()) return;
  cudaStreamSynchronize(stream_);
  cudaEventDestroy(forked_), cudaEventDestroy(joined_);
  std::lock_guard lock(idle.mutex);
  idle.of_device[device_].push_back(stream_);
}

void CopyStream::fork(Stream caller) {
  check_cuda(cudaEventRecord(forked_, caller), "forking the copies");
  check_cuda(cudaStreamWaitEvent(stream_, forked_), "forking the copies");
}

void CopyStream::join(Stream caller) {
  check_cuda(cudaEventRecord(joined_, stream_), "joining the copies");
  check_cuda(cudaStreamWaitEvent(caller, joined_), "joining the copies");
}

void CopyStream::enqueue(std::span<Transfer const> transfers) {
  for (Transfer const& t : transfers) {
    if (!timed_) {
      flux::enqueue(t, stream_);
      continue;
    }
    TimedCopy copy{t, {}, {}};
    auto mark = [&](std::shared_ptr<Moment>& moment) { moment = std::make_shared<Moment>(stream_); };
    enqueue_between(
        t, stream_, [&] { mark(copy.begin); }, [&] { mark(copy.end); });
    if (copy.begin) timed_->push_back(copy);
  }
}

void CopyStream::enqueue_timed(std::span<Transfer const> transfers, std::function<void()> const& enqueue) {
  if (!timed_ || transfers.empty()) return enqueue();
  TimedCopy all{transfers.front(), std::make_shared<Moment>(stream_), {}};
  enqueue();
  all.end = std::make_shared<Moment>(stream_);
  timed_->push_back(all);
}

}  // namespace flux
