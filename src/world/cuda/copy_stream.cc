#include "world/cuda/copy_stream.h"

#include <map>
#include <mutex>
#include <vector>

#include "kernel/call.h"
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

void copy_rows(Transfer const& t, Stream stream) {
  if (t.row_bytes == t.to_stride && t.row_bytes == t.from_stride)
    check_cuda(cudaMemcpyAsync(t.to, t.from, t.rows * t.row_bytes, cudaMemcpyDefault, stream), "copying rows");
  else
    check_cuda(
        cudaMemcpy2DAsync(t.to, t.to_stride, t.from, t.from_stride, t.row_bytes, t.rows, cudaMemcpyDefault, stream),
        "copying rows");
}

bool has_rows(Transfer const& t) { return t.to && t.rows > 0 && t.row_bytes > 0; }

}  // namespace

void enqueue(Transfer const& t, Stream stream) {
  if (t.after) wait_word(stream, t.after, t.goal);
  if (t.clear_after) write_word(stream, t.after, 0);
  if (has_rows(t)) copy_rows(t, stream);
  if (t.set) write_word(stream, t.set, t.goal);
}

void enqueue_zeros(void* data, int64_t bytes, Stream stream) {
  if (bytes > 0) check_cuda(cudaMemsetAsync(data, 0, bytes, stream), "clearing sums");
}

void enqueue_words(Word* words, Word value, int64_t count, Stream stream) {
  static auto const fill = driver_function<decltype(&cuMemsetD32Async)>("cuMemsetD32Async");
  check_driver(fill(reinterpret_cast<CUdeviceptr>(words), value, count, stream), "filling words");
}

namespace {

// Streams are kept for whoever needs one next, the oldest first. Each new one takes the next of the GPU's few hardware
// queues, in turn, and streams that share a queue hold each other up: ranks that share a GPU might wait for each other
// for ever.
struct IdleStreams {
  std::mutex mutex;
  std::map<int, int> made;                         // on each device
  std::map<int, std::map<int, Stream>> of_device;  // by when they were made
} idle;

int this_device() {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "which GPU");
  return device;
}

}  // namespace

void wait_for(Stream stream) { check_cuda(cudaStreamSynchronize(stream), "waiting for a stream"); }

void clear_now(void* gpu, int64_t bytes) {
  check_cuda(cudaMemset(gpu, 0, bytes), "clearing memory");
  wait_for(nullptr);
}

void read_now(void* to, void const* gpu, int64_t bytes) {
  check_cuda(cudaMemcpy(to, gpu, bytes, cudaMemcpyDeviceToHost), "reading GPU memory");
}

KeptStream::KeptStream() : device_(this_device()) {
  std::lock_guard lock(idle.mutex);
  auto& streams = idle.of_device[device_];
  if (streams.empty()) {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    number_ = idle.made[device_]++;
  } else {
    number_ = streams.begin()->first, stream_ = streams.begin()->second;
    streams.erase(streams.begin());
  }
}

KeptStream::~KeptStream() {
  if (gave_up_on_gpu()) return;
  cudaStreamSynchronize(stream_);
  std::lock_guard lock(idle.mutex);
  idle.of_device[device_][number_] = stream_;
}

void keep_streams(int count, std::function<void(Stream)> const& first_work) {
  std::vector<std::unique_ptr<KeptStream>> streams(count);  // all at a time, or it would be one again and again
  for (auto& stream : streams) {
    stream = std::make_unique<KeptStream>();
    first_work(*stream);
    wait_for(*stream);
  }
}

CopyStream::CopyStream(bool apart) {
  if (apart) waits_ = std::make_unique<KeptStream>(), words_ = std::make_unique<KeptStream>();
  for (cudaEvent_t* event : {&forked_, &ordered_, &copied_[0], &copied_[1]})
    check_cuda(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "an event");
}

CopyStream::~CopyStream() {
  if (gave_up_on_gpu()) return;
  for (cudaEvent_t event : {forked_, ordered_, copied_[0], copied_[1]}) cudaEventDestroy(event);
}

void CopyStream::order(Stream earlier, Stream later, CUevent_st* by) {
  check_cuda(cudaEventRecord(by, earlier), "ordering streams");
  check_cuda(cudaStreamWaitEvent(later, by), "ordering streams");
}

void CopyStream::fork(Stream caller) {
  order(caller, copies_, forked_);
  waiting_ = false;  // the waits follow with the first one
}

void CopyStream::join(Stream caller) {
  tell();
  if (telling_) order(*words_, caller, ordered_);
  order(copies_, caller, ordered_);
  telling_ = false;
}

void CopyStream::enqueue(std::span<Transfer const> transfers, bool more) {
  for (size_t i = 0; i < transfers.size(); ++i) {
    Transfer const& t = transfers[i];
    bool const waited = i > 0 && t.after == transfers[i - 1].after && !t.clear_after;  // to be copied to several
    TimedCopy* const timed = timed_ && has_rows(t) ? &timed_->emplace_back(TimedCopy{t, {}, {}}) : nullptr;
    if (!waited) wait(t, timed);
    copy(t, timed);
  }
  if (!more) tell();
}

void CopyStream::wait(Transfer const& t, TimedCopy* timed) {
  if (!t.after) return;
  if (waits_ && !waiting_) check_cuda(cudaStreamWaitEvent(*waits_, forked_), "forking the waits for copies");
  waiting_ = waits_ != nullptr;
  if (watch_)
    enqueue_await(t.after, t.goal, *watch_, t.awaited, t.awaited_from, t.row, waits());
  else
    wait_word(waits(), t.after, t.goal);
  if (t.clear_after) write_word(waits(), t.after, 0);
  if (waiting_) order(*waits_, copies_, ordered_);
  if (timed) timed->ready = std::make_shared<Moment>(waits());
}

// A stream write between two copies would keep the copy engine for some 8 us. The stream that writes is told to wait
// only when the next copy has been enqueued: a graph follows a node's first successor in the same queue.
void CopyStream::copy(Transfer const& t, TimedCopy* timed) {
  if (!untold_.empty() && !t.after && !has_rows(t)) return untold_.push_back(t);
  bool const first = timed && timed_->size() == 1 && !t.after;
  if (first) timed->ready = std::make_shared<Moment>(copies_);
  if (has_rows(t)) copy_rows(t, copies_);
  bool const apart = words_ && has_rows(t) && t.set;
  if (timed && !apart) timed->end = std::make_shared<Moment>(copies_);
  tell();  // of the copy before
  if (!apart) {
    if (t.set) write_word(copies_, t.set, t.goal);
    return;
  }
  turn_ ^= 1;
  check_cuda(cudaEventRecord(copied_[turn_], copies_), "marking the end of a copy");
  untold_ = {t}, untold_time_ = timed ? timed_->size() - 1 : 0;
}

void CopyStream::tell() {
  if (untold_.empty()) return;
  check_cuda(cudaStreamWaitEvent(*words_, copied_[turn_]), "waiting for the end of a copy");
  if (timed_) timed_->at(untold_time_).end = std::make_shared<Moment>(*words_);  // between copies it would hold them up
  for (Transfer const& t : untold_)
    if (t.set) write_word(*words_, t.set, t.goal);
  untold_.clear(), telling_ = true;
}

void CopyStream::enqueue_timed(std::span<Transfer const> transfers, std::function<void()> const& enqueue) {
  if (!timed_ || transfers.empty()) return enqueue();
  TimedCopy all{transfers.front(), std::make_shared<Moment>(copies_), {}};
  enqueue();
  all.end = std::make_shared<Moment>(copies_);
  timed_->push_back(all);
}

}  // namespace flux
