#pragma once
// Packets: twelve bytes of a row and the tag that says whose they are, in one store that arrives as a whole. Who sees
// the tag has the bytes: no word behind the data, no round trip, nothing to clear.
//
// A tag holds the number of the call, which all ranks count alike, so what an older call left is never taken for this
// one's. Calls use two halves of the packets in turn. That is all the flow control there is: a rank that has all
// packets of call c + 1 has heard from every peer, directly or through the owner of a sum, that it has read those of
// call c, since each sends the later ones behind that.
#include "tile/place.h"

namespace flux {

inline constexpr int kPacketBytes = sizeof(Packet::data);

/// Packets of a row.
FLUX_HD constexpr int64_t packets_of(int64_t row_bytes) { return (row_bytes + kPacketBytes - 1) / kPacketBytes; }

/// A call's number, and enough of its digest to see that a peer makes another call. Never 0.
FLUX_HD constexpr Word tag_of(Word call, Word digest) { return call << 8 | (digest & 0xff) | 1; }
/// Calls after which tags come again. Long before, packets that no call writes are cleared, one a call.
inline constexpr Word kTaggedCalls = 1 << 24;
/// The one whose turn it is, of the half that this call uses.
FLUX_HD constexpr int64_t packet_to_clear(Word call, int64_t half) { return (call % kTaggedCalls) / 2 % half; }

/// Waits until `packet`, which was loaded from `from`, has the tag. As await().
FLUX_HD inline bool await_packet(Packet const* from, Packet& packet, Word tag, Watch const& watch, Awaited what,
                                 int peer, int64_t row) {
  auto look = [&] { return packet = load_packet(from), (packet.tag ^ tag) >> 8 == 0 ? packet.tag : 0; };
  return packet.tag == tag || await_seen(look, tag, watch, what, peer, row);
}

/// Where the packets of one call lie in the half of a rank: partial sums by source, behind them rows that are whole,
/// behind those, if need be, a greeting of each rank.
struct PacketLayout {
  Shards owners;  ///< of rows; one owner: everybody
  int ranks = 1;
  int64_t row_packets = 0;
  bool partials = true;  ///< each rank sends its partial sums of a row to the owner
  bool rows = false;     ///< the owner of a row sends it, summed or as it is, to all

  /// `row` counts the rows that the receiver adds up.
  FLUX_HD constexpr int64_t partial(int source, int64_t row) const {
    return (source * owners.largest() + row) * row_packets;
  }
  FLUX_HD constexpr int64_t whole(int64_t row) const { return partial(partials ? ranks : 0, row); }
  /// With fewer rows than ranks some would hear nothing of others, and could be any number of calls ahead of them. An
  /// all-reduce hears from the owners, who have heard from all.
  FLUX_HD constexpr bool greets() const { return owners.total < owners.ranks && !(partials && rows); }
  FLUX_HD constexpr int64_t greeting(int source) const { return whole(rows ? owners.total : 0) + source; }
  FLUX_HD constexpr int64_t size() const { return greeting(greets() ? ranks : 0); }
  FLUX_HD constexpr Rows rows_of(int rank) const {
    return owners.ranks > 1 ? Rows{owners.begin(rank), owners.size(rank)} : Rows{0, owners.total};
  }
  /// Whether `rank` waits for the packet at `at`. The others of its half are free to be cleared.
  FLUX_HD constexpr bool awaited(int rank, int64_t at) const {
    if (at >= size()) return false;
    if (at >= greeting(0)) return at != greeting(rank);
    int64_t const row = quotient(at, row_packets), slots = partials ? ranks * owners.largest() : 0;
    if (row >= slots) return owners.owner(row - slots) != rank;
    int64_t const source = quotient(row, owners.largest());
    return source != rank && row - source * owners.largest() < rows_of(rank).count;
  }
};

}  // namespace flux
