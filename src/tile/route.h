#pragma once
// A route says where a finished tile goes and who is told. Like a gate it holds addresses and signals, never data.
#include "tile/place.h"
#include "tile/schedule.h"

namespace flux {

/// The words of partial sums, one for each (source, band): a band is the part of `tall` tile rows that one rank owns.
/// An owner's bands are counted from the tile row in which its shard begins.
struct BandWords {
  Shards shards;  // output rows over their owners
  int block_m = 1;
  Tiling tiling = Tiling::kAcross;
  int tall = 1;  // a higher band is announced later, and sent at lower cost

  FLUX_HD constexpr int64_t height() const { return int64_t{1} * tall * block_m; }
  /// Rows of the owner's first tile row that lie before its shard.
  FLUX_HD constexpr int64_t offset(int owner) const {
    if (tiling == Tiling::kWithin) return 0;
    int64_t const begin = shards.begin(owner);
    return begin - quotient(begin, block_m) * block_m;
  }
  /// Tile rows that hold rows of the owner's.
  FLUX_HD constexpr int tile_rows(int owner) const {
    int64_t const rows = shards.size(owner);
    return rows == 0 ? 0 : static_cast<int>(quotient(rows + offset(owner) + block_m - 1, block_m));
  }
  /// The same, of one band.
  FLUX_HD constexpr int tile_rows(int owner, int band) const {
    if (tall == 1) return 1;
    int const left = tile_rows(owner) - band * tall;
    return left < tall ? left : tall;
  }
  FLUX_HD constexpr int count(int owner) const {
    return tall == 1 ? tile_rows(owner) : static_cast<int>(quotient(tile_rows(owner) + tall - 1, tall));
  }
  FLUX_HD constexpr int most() const {
    int64_t const tile_rows = quotient(shards.largest(), block_m) + 2;
    return static_cast<int>(tall == 1 ? tile_rows : quotient(tile_rows + tall - 1, tall));
  }
  /// Of the band that these rows of a tile, or of a band, belong to.
  FLUX_HD constexpr int index(Place band) const {
    return static_cast<int>(quotient(band.row + offset(band.rank), height()));
  }
  FLUX_HD constexpr int64_t size() const { return int64_t{1} * shards.ranks * most(); }
  FLUX_HD constexpr int64_t index(int source, int band) const { return int64_t{1} * source * most() + band; }
  /// The rows of band `band` of `owner`, within its shard.
  FLUX_HD constexpr Place place(int owner, int band) const {
    int64_t const first = band == 0 ? 0 : band * height() - offset(owner);
    int64_t const end = (band + 1) * height() - offset(owner), rows = shards.size(owner);
    return {owner, first, (end < rows ? end : rows) - first};
  }
};

/// How a band is written.
enum class Write {
  kStore,  // over what is there
  kAdd,    // added to what is there, atomically
  kRelay,  // added to what the left neighbour sent for it, the sum written further on
};

/// Counts the tiles of a band in this rank's own memory; whoever stored the last one sets the band's word. The counting
/// is acquire and release, so the word covers the stores of all who counted.
struct Announcer {
  BandWords bands;
  int tiles_n = 1;         // of a tile row
  Word* counts = nullptr;  // [owner][band], ours, zero between calls
  Symmetric<Word> words;   // where the word of a band is set
  Word goal = 0;

  /// True for the one caller that stored the last tile of the band: `rows` are those of its tile.
  FLUX_HD bool last(Place rows) const {
    int const band = bands.index(rows);
    Word* const count = counts + bands.index(rows.rank, band);
    if (count_up(count) + 1 != static_cast<Word>(tiles_n * bands.tile_rows(rows.rank, band))) return false;
    *count = 0;  // covered by the release of the band's word
    return true;
  }
  FLUX_HD void tell(int rank, int source, Place band) const {
    store_release(words.at(rank) + bands.index(source, bands.index(band)), goal);
  }
};

/// C stays here.
struct Keep {
  int rank = 0;
  int64_t m = 0;
  FLUX_HD constexpr Shards shards() const { return {m, 1, 1}; }
  FLUX_HD constexpr int copies() const { return 1; }
  FLUX_HD Place where(Place band, int64_t, int) const { return {rank, band.row, band.rows}; }
  FLUX_HD constexpr Write write(Place) const { return Write::kStore; }
  FLUX_HD bool wait(Place, int64_t) const { return true; }
  FLUX_HD constexpr bool announces() const { return false; }
  FLUX_HD void announce(Place) const {}
};

/// To its owner, into our slot there; the owner sums the slots in rank order.
struct Push {
  int rank = 0;
  int64_t slot_rows = 0;  // rows of one slot
  Announcer out;
  FLUX_HD constexpr Shards shards() const { return out.bands.shards; }
  FLUX_HD constexpr int copies() const { return 1; }
  FLUX_HD Place where(Place band, int64_t, int) const {
    int const slot = planted(Bug::kWrongSlot) ? (rank + 1) % shards().ranks : rank;
    return {band.rank, slot * slot_rows + band.row, band.rows};
  }
  FLUX_HD constexpr Write write(Place) const { return Write::kStore; }
  FLUX_HD bool wait(Place, int64_t) const { return true; }
  FLUX_HD constexpr bool announces() const { return true; }
  FLUX_HD void announce(Place band) const {
    if (out.last(band)) out.tell(band.rank, rank, band);
  }
};

/// Stored here; a copy engine sends a band to its slot at the owner once it is whole. Keeps slow links away from the
/// maths.
struct Stage {
  int rank = 0;
  Announcer out;  // words: ours, [owner] arrays that the copies wait for
  FLUX_HD constexpr Shards shards() const { return out.bands.shards; }
  FLUX_HD constexpr int copies() const { return 1; }
  FLUX_HD Place where(Place band, int64_t first, int) const { return {rank, first, band.rows}; }
  FLUX_HD constexpr Write write(Place) const { return Write::kStore; }
  FLUX_HD bool wait(Place, int64_t) const { return true; }
  FLUX_HD constexpr bool announces() const { return true; }
  FLUX_HD void announce(Place band) const {
    if (out.last(band)) out.tell(band.rank, rank, band);
  }
};

/// Added in place at its owner, in the order of arrival: not the same bits from run to run.
struct Sum {
  int rank = 0;
  Announcer out;
  FLUX_HD constexpr Shards shards() const { return out.bands.shards; }
  FLUX_HD constexpr int copies() const { return 1; }
  FLUX_HD Place where(Place band, int64_t, int) const { return band; }
  FLUX_HD constexpr Write write(Place) const { return Write::kAdd; }
  FLUX_HD bool wait(Place, int64_t) const { return true; }
  FLUX_HD constexpr bool announces() const { return true; }
  FLUX_HD void announce(Place band) const {
    if (out.last(band)) out.tell(band.rank, rank, band);
  }
};

/// The relay: what the left neighbour sent for a band, plus our own part, goes to the right neighbour; the owner is the
/// last of the ring. Traffic between neighbours only. The inbox holds global rows; the schedule is `kRelay`, `kWithin`.
struct Ring {
  int rank = 0;
  Announcer out;
  Word const* inbox = nullptr;  // our words, [owner][band], set by the left neighbour
  Watch watch;
  FLUX_HD constexpr Shards shards() const { return out.bands.shards; }
  FLUX_HD constexpr int copies() const { return 1; }
  FLUX_HD constexpr int left() const { return (rank + shards().ranks - 1) % shards().ranks; }
  FLUX_HD constexpr int right() const { return (rank + 1) % shards().ranks; }
  FLUX_HD Place where(Place band, int64_t first, int) const {
    return {band.rank == rank ? rank : right(), first, band.rows};
  }
  /// The ring of a band starts behind its owner.
  FLUX_HD constexpr bool starts(Place band) const { return band.rank == left(); }
  FLUX_HD constexpr Write write(Place band) const { return starts(band) ? Write::kStore : Write::kRelay; }
  FLUX_HD bool wait(Place band, int64_t first) const {
    if (write(band) == Write::kStore) return true;
    return await(inbox + out.bands.index(band.rank, out.bands.index(band)), out.goal, watch, Awaited::kPartial, left(),
                 first);
  }
  FLUX_HD constexpr bool announces() const { return true; }
  FLUX_HD void announce(Place band) const {
    if (!out.last(band)) return;
    if (band.rank == rank)
      out.tell(rank, left(), band);  // the sum is whole: in the word that the left neighbour never uses
    else
      out.tell(right(), band.rank, band);
  }
};

/// To every rank, into our slot there; all ranks sum all rows in rank order (one-shot all-reduce).
struct Broadcast {
  int rank = 0;
  int ranks = 1;
  int64_t m = 0;
  Announcer out;  // bands over one owner: whole tile rows
  FLUX_HD constexpr Shards shards() const { return {m, 1, 1}; }
  FLUX_HD constexpr int copies() const { return ranks; }
  FLUX_HD Place where(Place band, int64_t, int copy) const {
    int const slot = planted(Bug::kWrongSlot) ? (rank + 1) % ranks : rank;
    return {(rank + copy) % ranks, slot * m + band.row, band.rows};
  }
  FLUX_HD constexpr Write write(Place) const { return Write::kStore; }
  FLUX_HD bool wait(Place, int64_t) const { return true; }
  FLUX_HD constexpr bool announces() const { return true; }
  FLUX_HD void announce(Place band) const {
    if (!out.last(band)) return;
    for (int p = 0; p < ranks; ++p) out.tell((rank + p) % ranks, rank, band);
  }
};

}  // namespace flux
