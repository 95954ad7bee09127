#pragma once
// A collective alone, by means that know nothing of tiles: whole shards between this rank and each of its peers, both
// ways. What the baselines send, and what the link is seen to carry. A call begins and ends as those of the operators
// do, so that what differs is the transfer. Real ranks write into each other's memory and say so by a word; in a mirror
// this rank writes, and fetches what its peers would have written.
#include <string_view>

#include "bench/gemm/cuda.h"
#include "bench/gemm/problem.h"
#include "kernel/slot_sum.h"
#include "op/gpu/channel.h"

namespace flux::bench {

class Exchange {
 public:
  enum class By { kCopies, kHalves, kKernel };  ///< a copy a shard, two a shard, a kernel

  /// The collective of the problem's operator. `own`: AG, this rank's rows [own, k], which are put into their place
  /// now; none: the caller puts them there. Collective.
  Exchange(World& world, GemmProblem const& problem, Tensor const& own = {});

  /// AG: all rows, gathered; RS and AR: this rank's partial sums of all rows.
  std::byte* rows() const;
  std::byte* own_rows() const { return rows() + shards_.begin(rank_) * row_bytes_; }
  /// The whole collective. RS and AR: `out` becomes the sum.
  void run(By by, Tensor const& out, Stream stream);

  /// Its parts, for who puts a GEMM between them. Distances are 1 to ranks - 1.
  Call begin(Stream stream) { return channel_.begin("", stream); }
  /// What comes behind this on `stream` is beside what was sent so far; what is sent from here on comes after `stream`.
  void fork(Stream stream);
  /// Our rows go to the rank so far ahead. In a mirror those of RS and AR come from as far behind, in lock step.
  void send(Call const& call, int distance, By by = By::kCopies);
  /// AG: what comes behind this on `stream` may read the rows of source(distance).
  void await(Call const& call, int distance, Stream stream);
  /// When all has been sent. RS and AR: `out` becomes the sum; AG: all rows are here.
  void finish(Call const& call, Tensor const& out, Stream stream);
  /// In a mirror: sums what came, and what stands at `own` instead of our own partials.
  void sum_again(Tensor const& out, std::byte const* own, Stream stream) const;

  Shards const& shards() const { return shards_; }
  int source(int distance) const { return (rank_ - distance + ranks_) % ranks_; }
  int owner(int distance) const { return (rank_ + distance) % ranks_; }
  int rank() const { return rank_; }
  int64_t sent_bytes() const;
  bool gathers() const { return op_ == Op::kAllGatherGemm; }

 private:
  bool to_all() const { return op_ == Op::kGemmAllReduce; }
  bool mirrored() const { return channel_.mirrored(); }
  Transfer rows_at(std::byte const* from, std::byte* to, int64_t rows) const;
  Transfer coming(Call const& call, int distance) const;  // in a mirror
  Transfer going(Call const& call, int distance) const;
  void copy(bool in, Transfer const& whole, By by);
  void join(bool in, Stream stream);
  void send_by_kernel(Call const& call, Stream stream);
  Arrival arrival(Call const& call) const;
  SlotSum slots(Tensor const& out) const;

  Op op_;
  int rank_, ranks_, processors_;
  DType dtype_;
  Shards shards_;
  int64_t row_bytes_, block_bytes_;  // a block: the most that goes from one rank to another
  // At each rank, in a mirror: what it sends to us, then what it gets from us. Otherwise AG: all rows; RS and AR: a
  // slot a rank. And a word a source.
  GpuChannel channel_;
  Buffer rows_, slots_;  // what of both does not lie there
  CopyStream in_, out_;
  bool coming_ = false, going_ = false;  // whether they have copies that were not joined
};

}  // namespace flux::bench
