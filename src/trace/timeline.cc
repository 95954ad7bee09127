#include "trace/timeline.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "flux/error.h"

namespace flux {
namespace {

class Writer {
 public:
  std::vector<std::byte> bytes;

  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(T const& value) { append(&value, sizeof value); }
  void operator()(std::string const& text) {
    (*this)(static_cast<uint64_t>(text.size()));
    append(text.data(), text.size());
  }
  void size(size_t& count) { (*this)(static_cast<uint64_t>(count)); }

 private:
  void append(void const* data, size_t count) {
    auto const* from = static_cast<std::byte const*>(data);
    bytes.insert(bytes.end(), from, from + count);
  }
};

class Reader {
 public:
  explicit Reader(std::span<std::byte const> bytes) : bytes_(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(T& value) { std::memcpy(&value, take(sizeof value), sizeof value); }
  void operator()(std::string& text) {
    size_t count = 0;
    size(count);
    text.assign(reinterpret_cast<char const*>(take(count)), count);
  }
  /// Of something that has at least a byte each: more than there are bytes cannot be right.
  void size(size_t& count) {
    uint64_t wide = 0;
    (*this)(wide);
    if (wide > bytes_.size()) refuse();
    count = static_cast<size_t>(wide);
  }
  void end() const {
    if (!bytes_.empty()) refuse();
  }
  [[noreturn]] static void refuse() { throw Error(ErrorKind::kInvalid, "these bytes are no timeline of this build"); }

 private:
  std::byte const* take(size_t count) {
    if (count > bytes_.size()) refuse();
    auto const* at = bytes_.data();
    bytes_ = bytes_.subspan(count);
    return at;
  }
  std::span<std::byte const> bytes_;
};

constexpr uint32_t kMark = 0x464c5831;

/// The order of all fields, for both ways. Kinds pass as numbers.
template <class Pass>
void pass_span(Pass& pass, Span& span) {
  auto kind = static_cast<uint8_t>(span.kind), feeds = static_cast<uint8_t>(span.feeds);
  pass(span.rank), pass(span.track), pass(kind), pass(feeds), pass(span.peer);
  pass(span.begin_ns), pass(span.end_ns), pass(span.row), pass(span.rows), pass(span.n);
  if (kind >= kSpanKinds || feeds >= kSpanKinds) Reader::refuse();
  span.kind = static_cast<SpanKind>(kind), span.feeds = static_cast<SpanKind>(feeds);
}

}  // namespace

std::string_view name(SpanKind kind) {
  switch (kind) {
    case SpanKind::kWait: return "wait";
    case SpanKind::kMaths: return "maths";
    case SpanKind::kStore: return "store";
    case SpanKind::kCopy: return "copy";
    case SpanKind::kSum: return "sum";
    case SpanKind::kStep: return "step";
  }
  return "?";
}

void Timeline::merge(Timeline const& other) {
  if (title.empty()) title = other.title;
  if (facts.empty()) facts = other.facts;
  tracks.insert(other.tracks.begin(), other.tracks.end());
  spans.insert(spans.end(), other.spans.begin(), other.spans.end());
}

std::vector<Span> outside(std::span<Span const> waits, std::span<Span const> busy) {
  std::vector<Span> left;
  for (Span rest : waits) {
    for (Span const& b : busy) {
      if (b.end_ns <= rest.begin_ns || (b.row == rest.row && b.n == rest.n)) continue;
      if (b.begin_ns >= rest.end_ns) break;
      if (b.begin_ns > rest.begin_ns) left.push_back(rest), left.back().end_ns = b.begin_ns;
      rest.begin_ns = std::min(b.end_ns, rest.end_ns);
    }
    if (rest.begin_ns < rest.end_ns) left.push_back(rest);
  }
  return left;
}

std::vector<std::byte> to_bytes(Timeline const& timeline) {
  Writer write;
  write(kMark);
  write(timeline.title);
  size_t facts = timeline.facts.size(), tracks = timeline.tracks.size(), spans = timeline.spans.size();
  write.size(facts);
  for (auto const& [what, value] : timeline.facts) write(what), write(value);
  write.size(tracks);
  for (auto const& [where, text] : timeline.tracks) write(where.first), write(where.second), write(text);
  write.size(spans);
  for (Span span : timeline.spans) pass_span(write, span);
  return std::move(write.bytes);
}

Timeline timeline_from(std::span<std::byte const> bytes) {
  Reader read(bytes);
  Timeline timeline;
  uint32_t mark = 0;
  read(mark);
  if (mark != kMark) Reader::refuse();
  read(timeline.title);
  size_t count = 0;
  for (read.size(count); count > 0; --count) {
    auto& [what, value] = timeline.facts.emplace_back();
    read(what), read(value);
  }
  for (read.size(count); count > 0; --count) {
    std::pair<int32_t, int32_t> where;
    read(where.first), read(where.second), read(timeline.tracks[where]);
  }
  for (read.size(count); count > 0; --count) pass_span(read, timeline.spans.emplace_back());
  read.end();
  return timeline;
}

}  // namespace flux
