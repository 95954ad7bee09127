#include "op/gpu/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace flux {

GpuRecording::GpuRecording(Timeline& timeline, Team& team, SpanKind feeds)
    : timeline_(timeline), team_(team), feeds_(feeds) {}

void GpuRecording::begin(GpuChannel& channel, Stream stream) {
  clock_ = std::make_unique<MomentClock>(stream);  // first: it refuses captured streams
  if (reserved_ > memory_bytes_) memory_ = team_.gpu()->allocate(reserved_), memory_bytes_ = reserved_;
  enqueue_zeros(memory_.get(), reserved_, stream);
  taken_ = reserved_ = 0;
  channel.record(&out_, &in_);
  begin_part(SpanKind::kStep, stream);
}

GpuRecording::Rings GpuRecording::rings_of(GemmLaunch const& l) {
  int const blocks = blocks_of(l), workers = std::max(blocks / l.tile.cluster, 1);
  Rings rings;
  rings.blocks = blocks;
  rings.stamps.capacity = static_cast<int>((l.order.size() + workers - 1) / workers) * l.gate.slices().ranks;
  return rings;
}

void GpuRecording::reserve(GemmLaunch const& launch) { reserved_ += rings_of(launch).bytes(); }

Stamps GpuRecording::stamps(GemmLaunch const& launch) {
  Rings rings = rings_of(launch);
  if (rings.bytes() == 0) return {};
  if (taken_ + rings.bytes() > memory_bytes_) throw Error(ErrorKind::kInternal, "no room was made for a GEMM's stamps");
  rings.stamps.rings = reinterpret_cast<Stamp*>(memory_.get() + taken_);
  taken_ += rings.bytes();
  rings_.push_back(rings);
  return rings.stamps;
}

void GpuRecording::begin_part(SpanKind kind, Stream stream) {
  parts_.push_back({kind, std::make_shared<Moment>(stream), nullptr});
}

void GpuRecording::end_part(Stream stream) {
  auto const open = std::find_if(parts_.rbegin(), parts_.rend(), [](Part const& part) { return !part.end; });
  open->end = std::make_shared<Moment>(stream);
}

void GpuRecording::close(GpuChannel& channel, Stream stream) {
  end_part(stream);
  channel.record(nullptr, nullptr);
  wait_for(stream);
  for (Rings const& rings : rings_) add_blocks(rings);
  add_copies(out_, kFirstTrack, in_.empty() ? "copies" : "copies that go");
  add_copies(in_, kFirstTrack + 1, "copies that come");
  for (Part const& part : parts_) {
    timeline_.tracks[{team_.rank(), kFirstTrack + 2}] = "stream";
    timeline_.spans.push_back(span(part.kind, kFirstTrack + 2, clock_->ns(*part.begin), clock_->ns(*part.end)));
  }
  rings_.clear(), parts_.clear(), clock_.reset();
}

Span GpuRecording::span(SpanKind kind, int track, int64_t begin_ns, int64_t end_ns) const {
  Span s;
  s.rank = team_.rank(), s.track = track, s.kind = kind, s.begin_ns = begin_ns, s.end_ns = end_ns;
  return s;
}

void GpuRecording::add_copies(std::vector<TimedCopy>& copies, int track, std::string const& name) {
  int64_t before = 0;  // the end of the copy before
  for (TimedCopy const& copy : copies) {
    int64_t const begin = std::max(before, copy.ready ? clock_->ns(*copy.ready) : before);
    before = clock_->ns(*copy.end);
    Span s = span(SpanKind::kCopy, track, begin, before);
    s.feeds = feeds_, s.peer = copy.transfer.peer, s.row = copy.transfer.row, s.rows = copy.transfer.rows;
    timeline_.tracks[{s.rank, track}] = name;
    timeline_.spans.push_back(s);
  }
  copies.clear();
}

// The gatekeeper waits for a tile while the one before it is multiplied: what is drawn is the rest of that wait. The
// loader asks for a tile's operands while the tile before it is still multiplied: the maths of a tile begin then, or
// when those of the one before have ended, and end when its first chunk is finished.
void GpuRecording::add_blocks(Rings const& rings) {
  std::vector<Stamp> host(rings.stamps.size(rings.blocks));
  read_now(host.data(), rings.stamps.rings, static_cast<int64_t>(host.size() * sizeof host[0]));
  Stamps const stamps{host.data(), rings.stamps.capacity};
  for (int block = 0; block < rings.blocks; ++block) {
    timeline_.tracks[{team_.rank(), block}] = fmt::format("block {}", block);
    std::vector<Span> waits, tiles;
    auto tell = [&](SpanKind kind, Stamp const& at, int64_t begin_ns, int64_t end_ns) {
      Span s = span(kind, block, begin_ns, end_ns);
      s.row = at.row, s.rows = at.rows, s.n = at.n;
      return s;
    };
    int64_t before = 0;
    for (int i = 0; i < stamps.capacity; ++i) {
      Stamp const &wait = stamps.ring(block, Phase::kWait)[i], &maths = stamps.ring(block, Phase::kMaths)[i],
                  &store = stamps.ring(block, Phase::kStore)[i];
      if (wait.end_ns > wait.begin_ns) waits.push_back(tell(SpanKind::kWait, wait, wait.begin_ns, wait.end_ns));
      if (store.end_ns == 0) continue;
      tiles.push_back(
          tell(SpanKind::kMaths, maths, std::max(maths.begin_ns, before), std::max(store.begin_ns, before)));
      timeline_.spans.push_back(tell(SpanKind::kStore, store, store.begin_ns, store.end_ns));
      before = std::max(store.begin_ns, before);
    }
    std::ranges::copy(tiles, std::back_inserter(timeline_.spans));
    std::ranges::copy(outside(waits, tiles), std::back_inserter(timeline_.spans));
  }
}

}  // namespace flux
