#pragma once
// A collective alone, by means that know nothing of tiles: whole shards between this rank and each of its peers, both
// ways. What the baselines send, and what the link is seen to carry. A call begins and ends as those of the operators
// do, so that what differs is the transfer.
#include <string_view>

#include "bench/gemm/cuda.h"
#include "bench/gemm/problem.h"
#include "op/gpu/channel.h"

namespace flux::bench {

class Exchange {
 public:
  enum class By { kCopies, kHalves, kKernel };  ///< a copy a shard, two a shard, a kernel

  /// The collective of the problem's operator. `own`: AG, this rank's rows [own, k]. Collective.
  Exchange(World& world, GemmProblem const& problem, Tensor const& own);

  /// AG: all rows, gathered; RS and AR: this rank's partial sums of all rows.
  std::byte* rows() const { return static_cast<std::byte*>(rows_.data()); }
  /// The whole collective. RS and AR: `out` becomes the sum.
  void run(By by, Tensor const& out, Stream stream);

  /// Its parts, for who puts a GEMM between them. Distances are 1 to ranks − 1.
  Call begin(Stream stream) { return channel_.begin("", stream); }
  Transfer coming(Call const& call, int distance) const;  ///< from the rank so far behind us, which sends to us
  Transfer going(Call const& call, int distance) const;   ///< to the rank so far ahead
  /// Sums what came and our own partials, or what stands at `own` instead.
  void sum(Tensor const& out, Stream stream, std::byte const* own = nullptr) const;
  void finish(Call const& call, Stream stream) { channel_.finish(call, {}, stream); }

  CopyStream in, out;  // one a direction
  Shards const& shards() const { return shards_; }
  int source(int distance) const { return (rank_ - distance + ranks_) % ranks_; }
  int owner(int distance) const { return (rank_ + distance) % ranks_; }
  int rank() const { return rank_; }
  int64_t sent_bytes() const;
  bool gathers() const { return op_ == Op::kAllGatherGemm; }

 private:
  bool to_all() const { return op_ == Op::kGemmAllReduce; }
  Transfer rows_at(std::byte const* from, std::byte* to, int64_t rows) const;

  Op op_;
  int rank_, ranks_, processors_;
  DType dtype_;
  Shards shards_;
  int64_t row_bytes_, block_bytes_;  // a block: the most that goes from one rank to another
  Tensor own_;
  GpuChannel channel_;  // at each rank: what it sends to us, then what it gets from us
  Buffer rows_, slots_;
};

}  // namespace flux::bench
