#pragma once
// NCCL, for ranks whose GPUs do not reach each other's memory, as those of different nodes: pieces of memory sent and
// received. And its collectives, for who compares with them. The library is opened at run time, so that nothing links
// to it.
#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flux/tensor.h"
#include "flux/world.h"
#include "tile/place.h"

struct CUevent_st;

namespace flux {

class Nccl {
 public:
  /// Collective, of all ranks, each on a GPU of its own; this one is on `device`. Throws the same Error on every rank.
  static std::shared_ptr<Nccl> open(Bootstrap& bootstrap, int device, double limit_seconds);
  /// The same, but a communicator for each rail: `ranks`, this one's. Its kernels take at most `blocks`
  /// multiprocessors, and all connections are made now.
  static std::shared_ptr<Nccl> open_rail(Bootstrap& bootstrap, std::vector<int> ranks, int device, int blocks,
                                         double limit_seconds);
  ~Nccl();
  Nccl(Nccl const&) = delete;

  struct Piece {
    void* data;
    int64_t bytes;
    int peer;  // of the world
  };
  /// Enqueues all of them at once. Between two ranks pieces arrive in the order in which they are sent.
  void exchange(std::span<Piece const> sends, std::span<Piece const> receives, Stream stream);

  /// The collectives; every rank gives the same sizes. Rows belong to the ranks as `rows` says. Our own lie in place,
  /// the others' come.
  void all_gather(std::byte* all, Shards const& rows, int64_t row_bytes, Stream stream);
  /// `to` becomes the sum of every rank's `all` in our rows.
  void reduce_scatter(std::byte const* all, std::byte* to, Shards const& rows, int64_t columns, DType dtype,
                      Stream stream);
  void all_reduce(std::byte const* from, std::byte* to, int64_t count, DType dtype, Stream stream);

  /// What keeps an exchange from its end, asked again and again by the world's watcher; empty: nothing, so far.
  std::string trouble(double limit_seconds);
  /// Ends what is under way and waits for a rank that does not come: from any thread. No exchange after it.
  void end();

 private:
  Nccl(std::vector<int> ranks, int rank, int device);
  static std::shared_ptr<Nccl> open(Bootstrap& bootstrap, std::shared_ptr<Nccl> made, int blocks, double limit_seconds);
  double stalled_seconds() const;
  int index_of(int rank) const { return static_cast<int>(std::ranges::find(ranks_, rank) - ranks_.begin()); }
  /// `act` makes the calls of one group and returns the first status that is not 0.
  template <class Act>
  void enqueue(char const* what, Stream stream, Act&& act);

  void* communicator_ = nullptr;
  std::vector<int> ranks_;               // of the world, in the communicator's order
  int rank_, device_;                    // ours in that order
  CUevent_st* last_ = nullptr;           // behind what was enqueued last
  std::atomic<int64_t> since_ns_{0};     // when it began; 0: none is under way
  std::atomic<bool> enqueueing_{false};  // which waits for the peers where connections are made
  std::atomic<bool> ended_{false};
  int64_t failed_ns_ = 0;  // since when it has reported an error; the watcher's
};

/// Why there is no NCCL on this machine, or none that serves between nodes; empty: there is.
std::string no_nccl();
std::string no_nccl_for_rails();
/// "2.28.9"; empty where there is none.
std::string nccl_version();

}  // namespace flux
