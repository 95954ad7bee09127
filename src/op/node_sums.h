#pragma once
// Rows of GEMM+RS and GEMM+AR whose owner is on another node: the node's partial sums of them meet at the rank of the
// owner's rail, are added there while the GEMM goes on, and leave band by band.
#include <functional>
#include <vector>

#include "op/channel.h"
#include "op/recording.h"
#include "tile/route.h"

namespace flux {

/// A band's rows on their way, whole rows of `row_bytes` that lie one behind the other; addresses and words are still
/// to be said.
Transfer rows_of(BandWords const& bands, Place band, int64_t row_bytes, Word goal);

class NodeSums {
 public:
  /// Room for `words` bands and `bytes` of rows, over all nodes.
  NodeSums(int64_t words, int64_t bytes);

  /// One call: the bands of every peer's rows, in the order in which the GEMM finishes them. `add(band, to)` waits for
  /// the node's partial sums of it and adds them into the rows at `to`; false: given up.
  void begin(HostChannel& channel, Call const& call, BandWords const& bands, int64_t row_bytes, Recording& recording,
             std::function<bool(Place band, std::byte* to)> add);

 private:
  std::vector<Word> added_;  // [peer's node][band]: the sum is made
  std::vector<std::byte> outbox_;
  BandWords bands_;  // of the call under way
  std::function<bool(Place, std::byte*)> add_;
  LinkClock no_link_;
  CopyEngine engine_;  // its thread adds
};

}  // namespace flux
