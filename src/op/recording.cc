#include "op/recording.h"

#include <fmt/format.h>

namespace flux {

Recording::Recording(Timeline* timeline, int rank, int workers, SpanKind feeds)
    : timeline_(timeline), rank_(rank), workers_(workers), feeds_(feeds), stamps_(timeline ? workers : 0) {}

void Recording::add(int worker, SpanKind kind, int64_t begin_ns, int64_t row, int64_t rows) {
  if (!timeline_) return;
  Span span;
  span.rank = rank_, span.track = worker, span.kind = kind;
  span.begin_ns = begin_ns, span.end_ns = now_ns(), span.row = row, span.rows = rows;
  std::lock_guard lock(mutex_);
  others_.push_back(span);
}

void Recording::close() {
  if (!timeline_) return;
  auto& spans = timeline_->spans;
  for (int worker = 0; worker < workers_; ++worker) {
    timeline_->tracks[{rank_, worker}] = fmt::format("worker {}", worker);
    for (auto const& stamp : stamps_[worker]) {
      Span span;
      span.rank = rank_, span.track = worker;
      span.kind = stamp.phase == Phase::kWait    ? SpanKind::kWait
                  : stamp.phase == Phase::kMaths ? SpanKind::kMaths
                                                 : SpanKind::kStore;
      span.begin_ns = stamp.begin_ns, span.end_ns = stamp.end_ns;
      span.row = stamp.tile.row, span.rows = stamp.tile.rows, span.n = stamp.tile.n;
      spans.push_back(span);
    }
  }
  spans.insert(spans.end(), others_.begin(), others_.end());
  if (!copies_.empty()) timeline_->tracks[{rank_, workers_}] = "copy engine";
  for (auto const& copy : copies_) {
    Span span;
    span.rank = rank_, span.track = workers_, span.kind = SpanKind::kCopy, span.feeds = feeds_, span.peer = copy.peer;
    span.begin_ns = copy.begin_ns, span.end_ns = copy.end_ns, span.row = copy.row, span.rows = copy.rows;
    spans.push_back(span);
  }
}

}  // namespace flux
