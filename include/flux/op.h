#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "flux/plan.h"
#include "flux/problem.h"
#include "flux/tensor.h"
#include "flux/world.h"

namespace flux {

struct Timeline;
class GatherOperator;  // what stands behind the door, on the host or on GPUs: src/op/operators.h
class SumOperator;
class Buffers;  // behind a Workspace: src/op/buffers.h

// In worlds on GPUs all tensors lie in GPU memory and calls are enqueued on `stream`, one stream a lane: run() returns
// at once and results are there when the stream has come so far. A CUDA graph may capture a call. A call that cannot
// end (a rank is gone) leaves NaN and ends within WorldOptions::limit_seconds; World::check and the next call throw
// then. The host runs at most 64 calls ahead of an operator, then a call waits; an operator that goes away waits for
// its calls. A graph that holds a call is replayed only as long as its operator lives.

/// Memory that an operator takes on each rank beside its operands, in bytes: told before anything is allocated. On GPUs
/// each part is rounded up to the driver's pages. An operator for which some rank has too little is an error on all.
struct MemoryNeed {
  int buffers = 1;      ///< of the plan
  int64_t buffer = 0;   ///< each of them, reached by all ranks: a Workspace may hold them
  int64_t scratch = 0;  ///< of this rank alone: a Workspace may hold it
  int64_t own = 0;      ///< of the operator alone: flags and counters
  int64_t packets = 0;  ///< reached by all ranks, for calls of few rows on GPUs: a Workspace may hold them

  int64_t total() const { return buffers * buffer + scratch + own + packets; }
  /// What serves this and the other, one after the other.
  MemoryNeed& cover(MemoryNeed const& other);
};

/// Buffers that operators of one world use in turn, so that the layers of a model do not multiply them. Their calls are
/// made in the same order on every rank, on the host by one thread at a time; on GPUs also on several streams, where
/// each call comes after the one before. Not for route=sum.
class Workspace {
 public:
  /// Collective. `need`: what memory() said of the operators, by cover(). Throws Error{kDevice} where there is no room.
  Workspace(World& world, MemoryNeed const& need);
  ~Workspace();
  std::shared_ptr<Buffers> const& buffers() const { return buffers_; }

 private:
  std::shared_ptr<Buffers> buffers_;
};

/// y = act(all_gather(x) · wᵀ + bias), the gather hidden behind the GEMM. Source: the FLUX paper, section 4.2.
///
/// Construction is collective and allocates all memory that ranks share; `run` is collective and allocates none of it.
/// `workspace`: whose buffers it uses instead of its own; it keeps them.
class AllGatherGemm {
 public:
  struct Shape {
    int64_t max_m = 0;  ///< most rows, over all ranks; a tuned plan is looked up for so many
    int64_t k = 0;
    DType dtype = DType::kF32;
    int64_t n = 0;  ///< columns of all weights of a call, over all ranks, to look a tuned plan up; 0: not known
    WeightLayout layout = WeightLayout::kOutIn;  ///< for the same
    bool gated = false;                          ///< for the same: n counts gate and up
  };
  AllGatherGemm(World& world, Shape const& shape, Plan const& plan = {}, Workspace const* workspace = nullptr);
  ~AllGatherGemm();

  /// The plan that it goes by: the one given, or a tuned one. The same on every rank.
  Plan const& plan() const { return plan_; }
  /// What construction will allocate on each rank, in a workspace or not.
  static MemoryNeed memory(World& world, Shape const& shape, Plan const& plan = {});
  /// Bytes of shared memory that a rank would allocate on the host for exactly this plan.
  static int64_t shared_bytes(Shape const& shape, int ranks, Plan const& plan = {});

  /// x: [m_r, k], this rank's part of m rows. Several weights may read one gather. `gathered`, if given, receives [m,
  /// k]. Throws `Error`: kInvalid before anything starts, kTimeout where a peer did not come.
  void run(int64_t m, Tensor const& x, std::span<Linear const> linears, Tensor const& gathered = {},
           Stream stream = nullptr);
  void run(int64_t m, Tensor const& x, Linear const& linear, Stream stream = nullptr) {
    run(m, x, std::span(&linear, 1), {}, stream);
  }

  /// Keeps the spans of the next calls in `timeline`; nullptr: none. On a GPU a recorded call waits for its end, and
  /// throws Error{kUnsupported} while its stream is captured.
  void record(Timeline* timeline);

 private:
  Plan plan_;
  std::unique_ptr<GatherOperator> operator_;
};

/// y = reduce_scatter(x · wᵀ) + ..., each finished tile sent to its owner at once. Source: the FLUX paper, section 4.1.
/// Deterministic unless the plan's route is `kSum`.
class GemmReduceScatter {
 public:
  struct Shape {
    int64_t max_m = 0;
    int64_t n = 0;
    DType dtype = DType::kF32;
    int64_t k = 0;  ///< over all ranks, for the choice of tiles on GPUs and of a tuned plan; 0: not known
    WeightLayout layout = WeightLayout::kOutIn;  ///< to look a tuned plan up
  };
  GemmReduceScatter(World& world, Shape const& shape, Plan const& plan = {}, Workspace const* workspace = nullptr);
  ~GemmReduceScatter();
  Plan const& plan() const { return plan_; }  ///< as AllGatherGemm's
  static MemoryNeed memory(World& world, Shape const& shape, Plan const& plan = {});
  static int64_t shared_bytes(Shape const& shape, int ranks, Plan const& plan = {});

  /// x: [m, k_r]; weight: [n, k_r] or [k_r, n]; out: [m_r, n].
  void run(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
           SumEpilogue const& epilogue = {}, Stream stream = nullptr);
  void record(Timeline* timeline);

 private:
  Plan plan_;
  std::unique_ptr<SumOperator> operator_;
};

/// y = all_reduce(x · wᵀ) + ..., for decoding.
class GemmAllReduce {
 public:
  using Shape = GemmReduceScatter::Shape;
  GemmAllReduce(World& world, Shape const& shape, Plan const& plan = {}, Workspace const* workspace = nullptr);
  ~GemmAllReduce();
  Plan const& plan() const { return plan_; }  ///< as AllGatherGemm's
  static MemoryNeed memory(World& world, Shape const& shape, Plan const& plan = {});
  static int64_t shared_bytes(Shape const& shape, int ranks, Plan const& plan = {});

  /// x: [m, k_r]; weight: [n, k_r] or [k_r, n]; out: [m, n] on every rank.
  void run(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
           SumEpilogue const& epilogue = {}, Stream stream = nullptr);
  void record(Timeline* timeline);

 private:
  Plan plan_;
  std::unique_ptr<SumOperator> operator_;
};

}  // namespace flux
