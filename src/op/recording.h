#pragma once
// What the parts of a call say of their times, brought into one timeline.
#include <map>
#include <mutex>
#include <vector>

#include "engine/host/engine.h"
#include "trace/timeline.h"
#include "world/copy_engine.h"

namespace flux {

class Recording {
 public:
  /// `timeline` may be null: then nothing is kept. `feeds`: what this operator's copies bring.
  Recording(Timeline* timeline, int rank, int workers, SpanKind feeds);
  /// Adds the spans to the timeline. Every copy has been drained.
  void close();

  std::vector<std::vector<host::Stamp>>* stamps() { return timeline_ ? &stamps_ : nullptr; }
  std::vector<TransferSpan>* copies() { return timeline_ ? &copies_ : nullptr; }
  std::vector<TransferSpan>* rail(int peer) { return timeline_ ? &rails_[peer] : nullptr; }
  /// A worker's span of another kind. From any worker.
  void add(int worker, SpanKind kind, int64_t begin_ns, int64_t row, int64_t rows);

 private:
  void add(std::vector<TransferSpan> const& transfers, int track, std::string const& name);

  Timeline* timeline_;
  int rank_, workers_;
  SpanKind feeds_;
  std::vector<std::vector<host::Stamp>> stamps_;
  std::vector<TransferSpan> copies_;
  std::map<int, std::vector<TransferSpan>> rails_;  // by peer
  std::mutex mutex_;
  std::vector<Span> others_;
};

}  // namespace flux
