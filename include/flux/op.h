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

/// y = act(all_gather(x) · wᵀ + bias), the gather hidden behind the GEMM. Source: the FLUX paper, section 4.2.
///
/// Construction is collective and allocates all memory that ranks share; `run` is collective and allocates none of it.
class AllGatherGemm {
 public:
  struct Shape {
    int64_t max_m = 0;  ///< most rows, over all ranks
    int64_t k = 0;
    DType dtype = DType::kF32;
  };
  AllGatherGemm(World& world, Shape const& shape, Plan const& plan = {});
  ~AllGatherGemm();

  /// Bytes of shared memory a rank will allocate.
  static int64_t shared_bytes(Shape const& shape, int ranks, Plan const& plan = {});

  /// x: [m_r, k], this rank's part of m rows. Several weights may read one gather. `gathered`, if given, receives [m,
  /// k]. Throws `Error`: kInvalid before anything starts, kTimeout where a peer did not come.
  void run(int64_t m, Tensor const& x, std::span<Linear const> linears, Tensor const& gathered = {});
  void run(int64_t m, Tensor const& x, Linear const& linear) { run(m, x, std::span(&linear, 1)); }

  /// Keeps the spans of the next calls in `timeline`; nullptr: none.
  void record(Timeline* timeline);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// y = reduce_scatter(x · wᵀ) + ..., each finished tile sent to its owner at once. Source: the FLUX paper, section 4.1.
/// Deterministic unless the plan's route is `kSum`.
class GemmReduceScatter {
 public:
  struct Shape {
    int64_t max_m = 0;
    int64_t n = 0;
    DType dtype = DType::kF32;
  };
  GemmReduceScatter(World& world, Shape const& shape, Plan const& plan = {});
  ~GemmReduceScatter();
  static int64_t shared_bytes(Shape const& shape, int ranks, Plan const& plan = {});

  /// x: [m, k_r]; weight: [n, k_r] or [k_r, n]; out: [m_r, n].
  void run(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
           SumEpilogue const& epilogue = {});
  void record(Timeline* timeline);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// y = all_reduce(x · wᵀ) + ..., for decoding.
class GemmAllReduce {
 public:
  using Shape = GemmReduceScatter::Shape;
  GemmAllReduce(World& world, Shape const& shape, Plan const& plan = {});
  ~GemmAllReduce();
  static int64_t shared_bytes(Shape const& shape, int ranks, Plan const& plan = {});

  /// x: [m, k_r]; weight: [n, k_r] or [k_r, n]; out: [m, n] on every rank.
  void run(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
           SumEpilogue const& epilogue = {});
  void record(Timeline* timeline);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flux
