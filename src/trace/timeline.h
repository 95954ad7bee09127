#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flux {

/// What somebody did for a while.
enum class SpanKind : uint8_t {
  kWait,   ///< a worker waits for rows of its tile
  kMaths,  ///< a tile is multiplied
  kStore,  ///< a finished tile is stored, here or at its owner
  kCopy,   ///< a copy engine moves rows
  kSum,    ///< partial sums are added
  kStep,   ///< a whole operation, drawn around the others
};
inline constexpr int kSpanKinds = 6;

std::string_view name(SpanKind kind);  ///< "wait", "maths", ...

/// One bar of the picture. Times are of one clock for all ranks, in nanoseconds.
struct Span {
  int32_t rank = 0;
  int32_t track = 0;  ///< a worker or a copy engine of that rank
  SpanKind kind = SpanKind::kMaths;
  SpanKind feeds = SpanKind::kMaths;  ///< of a copy: what its rows are for, kMaths (gathered input) or kSum (partials)
  int32_t peer = -1;                  ///< of a copy: the rank where the rows arrive, -1 for its own
  int64_t begin_ns = 0, end_ns = 0;
  int64_t row = -1, rows = 0;  ///< global rows, -1 if it has none
  int32_t n = -1;              ///< which block of columns, -1 for all

  bool operator==(Span const&) const = default;
};

/// What happened when, on all ranks of an operation.
struct Timeline {
  std::string title;
  /// What the reader must know, in order: {"problem", "m 2048 ..."}, {"link", "declared, 5 GB/s"}, ...
  std::vector<std::pair<std::string, std::string>> facts;
  std::map<std::pair<int32_t, int32_t>, std::string> tracks;  ///< {rank, track} to "worker 0", "copy engine 0"
  std::vector<Span> spans;

  /// Adds the spans and tracks of another rank; the title and facts stay, unless there are none yet.
  void merge(Timeline const& other);
  bool operator==(Timeline const&) const = default;
};

/// What is left of `waits` where no other tile of `busy` was under way: a worker may wait for its next tile while it
/// multiplies this one, which holds nobody up. Both in order of time, `busy` without overlaps; a wait may become
/// several, or none.
std::vector<Span> outside(std::span<Span const> waits, std::span<Span const> busy);

/// For gathering over processes of one build on one kind of machine; not a file format.
std::vector<std::byte> to_bytes(Timeline const& timeline);
/// Throws Error{kInvalid} unless `bytes` is what to_bytes gave.
Timeline timeline_from(std::span<std::byte const> bytes);

}  // namespace flux
