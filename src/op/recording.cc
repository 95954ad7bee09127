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
  add(copies_, workers_, "copy engine");
  int track = workers_;
  for (auto const& [peer, transfers] : rails_) add(transfers, ++track, fmt::format("rail to rank {}", peer));
}

void Recording::add(std::vector<TransferSpan> const& transfers, int track, std::string const& name) {
  if (!transfers.empty()) timeline_->tracks[{rank_, track}] = name;
  for (auto const& transfer : transfers) {
    Span span;
    span.rank = rank_, span.track = track, span.kind = SpanKind::kCopy, span.feeds = feeds_, span.peer = transfer.peer;
    span.begin_ns = transfer.begin_ns, span.end_ns = transfer.end_ns, span.row = transfer.row;
    span.rows = transfer.rows;
    timeline_->spans.push_back(span);
  }
}

}  // namespace flux
