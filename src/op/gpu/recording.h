#pragma once
// What a GPU says of the times of one call, brought into a timeline: stamps of the GEMM's blocks, moments around copies
// and slot sums. A call that is recorded waits for its end on the host.
#include <string>
#include <vector>

#include "kernel/gemm.h"
#include "op/gpu/channel.h"
#include "trace/timeline.h"

namespace flux {

class GpuRecording {
 public:
  /// `feeds`: what this operator's copies bring.
  GpuRecording(Timeline& timeline, Team& team, SpanKind feeds);

  /// Makes room for the rings of one more GEMM: before the call begins, since nothing is allocated within one.
  void reserve(GemmLaunch const& launch);
  /// Before the call begins. Throws Error{kUnsupported} while `stream` is captured.
  void begin(GpuChannel& channel, Stream stream);
  /// Rings for one GEMM of the call, zeroed.
  Stamps stamps(GemmLaunch const& launch);
  /// Around a part of the call in the caller's stream.
  void begin_part(SpanKind kind, Stream stream);
  void end_part(Stream stream);
  /// Behind the call: waits for it, adds its spans.
  void close(GpuChannel& channel, Stream stream);

 private:
  struct Rings {
    Stamps stamps;
    int blocks = 0;
    int64_t bytes() const { return stamps.size(blocks) * int64_t{sizeof(Stamp)}; }
  };
  struct Part {
    SpanKind kind;
    std::shared_ptr<Moment> begin, end;
  };
  static constexpr int kFirstTrack = 1 << 16;  // of what is no block

  static Rings rings_of(GemmLaunch const& launch);
  void add_copies(std::vector<TimedCopy>& copies, int track, std::string const& name);
  void add_blocks(Rings const& rings);
  Span span(SpanKind kind, int track, int64_t begin_ns, int64_t end_ns) const;

  Timeline& timeline_;
  Team& team_;
  SpanKind feeds_;
  std::vector<TimedCopy> out_, in_;
  std::vector<Rings> rings_;
  std::shared_ptr<std::byte> memory_;  // of rings
  int64_t memory_bytes_ = 0, reserved_ = 0, taken_ = 0;
  std::vector<Part> parts_;
  std::unique_ptr<MomentClock> clock_;  // of the call under way
};

}  // namespace flux
