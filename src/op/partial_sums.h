#pragma once
// The way of partial sums: every rank multiplies all rows with its part of k, and each row's partials meet at its owner
// (GEMM+RS, two-shot GEMM+AR) or at every rank (one-shot GEMM+AR). Over several nodes those of a node meet at the rank
// of the owner's rail, and one sum a node travels on.
#include <vector>

#include "engine/host/run.h"
#include "flux/op.h"
#include "op/node_slots.h"
#include "op/node_sums.h"

namespace flux {

class PartialSums {
 public:
  /// How partials travel. `kBroadcast` is the one-shot all-reduce.
  enum class Way { kPush, kStage, kSum, kRing, kBroadcast };
  static Way way_of(Plan const& plan);
  static Way way_of_all(Plan const& plan);  ///< of GEMM+AR

  /// Words come with each tile row of an owner; where copies carry the partials, with each communication tile.
  static BandWords bands(int64_t m, int ranks, int block_m, Way way, Plan const& plan);

  PartialSums(Team& team, int64_t max_m, int64_t n, DType dtype, Plan const& plan, Way way);

  /// Words and bytes a buffer needs for them.
  static int64_t words(int64_t max_m, Nodes const& nodes, Plan const& plan, Way way);
  /// What an operator of the host engine takes; `more`: of a buffer, behind those of the partials.
  static MemoryNeed memory(int64_t max_m, int64_t n, DType dtype, Nodes const& nodes, Plan const& plan, Way way,
                           int64_t more_words = 0, int64_t more_bytes = 0);
  static int64_t data_bytes(int64_t max_m, int64_t n, DType dtype, Nodes const& nodes, Plan const& plan, Way way);
  /// What partials of operands of `dtype` are stored as.
  static DType slot_dtype(DType dtype, Plan const& plan) {
    return plan.wide_slots && dtype != DType::kF64 ? DType::kF32 : result_of(dtype);
  }

  /// Multiplies x · weight, by their scales, and sends the tiles on their way. Returns when all of ours are stored;
  /// their words may follow.
  void multiply(HostChannel& channel, Call const& call, int64_t m, Tensor const& x, Tensor const& weight,
                WeightLayout layout, Scales const& scales, Recording& recording);

  /// Calls take(worker, slots, band) for each band that is summed here, on the workers, as soon as its partials are
  /// here: `slots` in rank order, those of this node before the sums of the others, each [rows summed here, n];
  /// band.row counts rows summed here, from 0.
  void sum(HostChannel& channel, Call const& call, Recording& recording,
           std::function<void(int, std::span<Tensor const>, Place)> const& take);

  BandWords const& bands() const { return bands_; }  ///< of the call under way
  host::Workers& workers() { return workers_; }

 private:
  /// Where rows of an owner meet on this node: at its own rank, or that of its rail. By owner.
  NodeSlots places() const { return {team_.nodes(), team_.rank()}; }
  Symmetric<std::byte> slots(HostChannel& channel, Call const& call) const {
    return places().by_owner(channel.data(call), slot_rows_ * row_bytes());
  }
  Symmetric<Word> words(HostChannel& channel, Call const& call) const {
    return places().by_owner(channel.words(call), bands_.most());
  }
  /// The partials of `owner`'s rows from the rank of position `source`, where they meet here.
  Tensor slot(HostChannel& channel, Call const& call, int owner, int source) const;
  /// The sums of another node for our rows, and their words.
  Tensor rail_slot(HostChannel& channel, Call const& call, int node) const;
  Word* rail_words(HostChannel& channel, Call const& call, int node) const;
  void exchange_sums(HostChannel& channel, Call const& call, Recording& recording);
  Schedule schedule(int tiles_n) const;
  Announcer announcer(HostChannel& channel, Call const& call, bool departs);
  int64_t row_bytes() const { return n_ * size_of(slot_dtype_); }

  Team& team_;
  int64_t n_;
  DType slot_dtype_;
  Plan plan_;
  Way way_;
  host::Workers workers_;
  std::vector<Word> counts_;        // tiles stored of each band of each owner
  std::vector<Word> departed_;      // per destination: words our copy engine waits for
  std::vector<std::byte> staging_;  // Stage: our partials of all rows
  std::vector<std::byte> zeros_;    // one row
  BandWords bands_;                 // of the call under way
  int64_t slot_rows_ = 0;
  NodeSums node_sums_;  // behind what its thread reads
};

/// Partial sums on their way to other ranks, where something has to carry them: copies, or a declared link.
struct Departures {
  PartialSums::Way way;
  int rank = 0, ranks = 1;
  BandWords bands = {};
  int64_t slot_rows = 0, row_bytes = 0;
  Word goal = 0;
  Symmetric<std::byte> slots = {};     // at each rank
  std::byte const* staging = nullptr;  // Stage: our partials of all rows
  Word* departed = nullptr;            // per destination, the words to wait for first; none: all is stored
  Symmetric<Word> words = {};          // where arrivals are told

  int64_t each() const { return int64_t{1} * ranks * bands.most(); }  ///< words of one destination
};
/// Band by band, in the order in which the tiles are finished.
std::vector<Transfer> copies(Departures const& departures);
/// The same within one of several nodes: to the ranks where the owners' rows meet. `slots` and `words` by owner.
std::vector<Transfer> copies_in_node(Departures const& departures, Nodes const& nodes);

}  // namespace flux
