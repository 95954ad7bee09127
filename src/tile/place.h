#pragma once
// Where rows lie. Rows are divided among ranks unevenly where they must be, so a tile may hold rows of several owners:
// everything answers in bands, one owner at a time.
#include "tile/signal.h"

namespace flux {

/// Consecutive rows of the global problem.
struct Rows {
  int64_t first, count;
  FLUX_HD constexpr int64_t end() const { return first + count; }
};

/// A band: `rows` rows in the buffer of `rank`, from its row `row` on.
struct Place {
  int rank;
  int64_t row, rows;
};

/// `total` elements over `ranks` ranks, in whole units: rank r owns [begin(r), begin(r + 1)).
struct Shards {
  int64_t total = 0;
  int ranks = 1;
  int64_t unit = 1;

  FLUX_HD constexpr int64_t units() const { return unit == 1 ? total : quotient(total + unit - 1, unit); }
  FLUX_HD constexpr int64_t begin(int r) const {
    if (ranks == 1) return r == 0 ? 0 : total;
    int64_t at = quotient(units() * r, ranks) * unit;
    return at < total ? at : total;
  }
  FLUX_HD constexpr int64_t size(int r) const { return begin(r + 1) - begin(r); }
  FLUX_HD constexpr int64_t largest() const {
    int64_t most = quotient(units() + ranks - 1, ranks) * unit;
    return most < total ? most : total;
  }
  /// The rank that owns `element`: the last r with begin(r) <= element.
  FLUX_HD constexpr int owner(int64_t element) const {
    if (ranks == 1) return 0;
    int64_t const before = unit == 1 ? element : quotient(element, unit);
    return static_cast<int>(quotient((before + 1) * ranks - 1, units()));
  }
  /// The first band of `rows`: those that one rank owns, as rows of its own shard.
  FLUX_HD constexpr Place band(Rows rows) const {
    int const rank = owner(rows.first);
    int64_t const end = planted(Bug::kRaggedBand) || rows.end() < begin(rank + 1) ? rows.end() : begin(rank + 1);
    return {rank, rows.first - begin(rank), end - rows.first};
  }
};

/// Calls f(Place) for each band of `rows`, in row order. f may return false to stop; the result says whether all went
/// well.
template <class F>
FLUX_HD constexpr bool each_band(Shards const& shards, Rows rows, F&& f) {
  while (rows.count > 0) {
    Place const band = shards.band(rows);
    if (!f(band, rows.first)) return false;
    rows = {rows.first + band.rows, rows.count - band.rows};
  }
  return true;
}

}  // namespace flux
