#pragma once
// NCCL, for ranks whose GPUs do not reach each other's memory: pieces of memory sent and received. And its collectives,
// for who compares with them. The library is opened at run time, so that nothing links to it.
#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "flux/tensor.h"
#include "flux/world.h"
#include "tile/place.h"

struct CUevent_st;

namespace flux {

class Nccl {
 public:
  /// Collective, of ranks each on a GPU of its own; this one is on `device`. Throws the same Error on every rank.
  static std::shared_ptr<Nccl> open(Bootstrap& bootstrap, int device, double limit_seconds);
  ~Nccl();
  Nccl(Nccl const&) = delete;

  struct Piece {
    void* data;
    int64_t bytes;
    int peer;
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

  /// How long an exchange has been under way without an end: from any thread.
  double stalled_seconds();
  /// Ends what is under way and waits for a rank that does not come: from any thread. No exchange after it.
  void end();

 private:
  Nccl() = default;
  /// `act` makes the calls of one group and returns the first status that is not 0.
  template <class Act>
  void enqueue(char const* what, Stream stream, Act&& act);

  void* communicator_ = nullptr;
  int device_ = 0, rank_ = 0;
  CUevent_st* last_ = nullptr;           // behind what was enqueued last
  std::atomic<int64_t> since_ns_{0};     // when it began; 0: none is under way
  std::atomic<bool> enqueueing_{false};  // which waits for the peers where connections are made
  std::atomic<bool> ended_{false};
};

/// Why there is no NCCL on this machine; empty: there is.
std::string no_nccl();
/// "2.28.9"; empty where there is none.
std::string nccl_version();

}  // namespace flux
