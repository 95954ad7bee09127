#pragma once
// One block of the engine for compute capability 8.0 and later: all of its threads wait, load, multiply, store and
// announce, one after another. What one block waits for, another on the same processor hides. docs/engines.md draws it.
#include "engine/ptx/thread.h"
#include "engine/sm80/maths.h"
#include "tile/loop.h"

namespace flux::sm80 {

/// What a block remembers in shared memory, since its registers are all taken.
struct Counts {
  uint32_t waits, stores;  // that were stamped
  uint32_t poisoned;       // a wait failed: what is stored from now on is NaN
};

template <class S>
class Engine {
 public:
  using T = typename S::Result;
  static constexpr bool kRoles = false;

  __device__ Engine(Operands const& operands, Watch const* watch, void* shared, Counts& counts)
      : operands_(operands),
        watch_(watch),
        shared_(static_cast<T*>(shared)),
        counts_(counts),
        loader_(operands),
        maths_(shared) {
    if (threadIdx.x == 0) counts_ = {};
    __syncthreads();
  }

  __device__ int first() const { return blockIdx.x; }
  __device__ int stride() const { return gridDim.x; }

  /// The maths is not timed here, where its times would be held in registers all through it: load() begins it.
  template <class F>
  __device__ bool timed(Phase phase, Tile tile, F&& f) {
    if (phase == Phase::kMaths) return f();
    int64_t const begin = operands_.stamps ? now_ns() : 0;
    bool const ok = f();
    if (operands_.stamps && threadIdx.x == 0) {
      uint32_t& count = phase == Phase::kWait ? counts_.waits : counts_.stores;
      operands_.stamps.add(blockIdx.x, phase, count++, tile, begin, now_ns());
    }
    return ok;
  }

  __device__ Party party() const { return {static_cast<int>(threadIdx.x), S::kThreads}; }
  /// A wait that failed, or a world that ended, poisons what is stored from now on: tiles go on, so that others' waits
  /// end too. After it all threads see what each acquired.
  __device__ bool admit(bool ok) {
    if (!__syncthreads_and(ok && !(watch_ && threadIdx.x == 0 && aborted(*watch_)))) counts_.poisoned = 1;
    return true;
  }
  __device__ bool check(bool ok) {
    if (!ok) counts_.poisoned = 1;
    return true;
  }

  __device__ void load(Place from, Tile tile, Rows k) {
    if (k.first == 0) {
      if (operands_.stamps && threadIdx.x == 0)
        operands_.stamps.add(blockIdx.x, Phase::kMaths, counts_.stores, tile, now_ns(), 0);
#pragma unroll
      for (auto& row : d_)
#pragma unroll
        for (auto& product : row) product[0] = product[1] = product[2] = product[3] = 0;
    }
    loader_.begin(from, tile, {k.first / S::kTogether, k.count / S::kTogether});
  }
  __device__ void multiply(Tile tile, Rows k) {
    maths_.accumulate(d_, loader_);
    if (k.end() == operands_.k) stage(tile);
  }

  /// The finished tile lies in shared memory; rows of it go where they belong in units of 16 bytes.
  __device__ void store(Place to, int skip, Tile tile, Write) {
    int const units = (gated() ? S::kN / 2 : S::kN) / 8, column = tile.n * units * 8;
    T* const first = static_cast<T*>(operands_.c.at(to.rank)) + to.row * operands_.c_stride + column;
    int const inside = (operands_.columns - column) / 8;
#pragma unroll 4
    for (int i = ptx::thread_now(); i < to.rows * units; i += S::kThreads) {
      int const row = i / units, unit = i % units;
      if (unit < inside)
        *reinterpret_cast<uint4*>(first + row * operands_.c_stride + unit * 8) =
            *reinterpret_cast<uint4 const*>(shared_ + swizzled<S::kN / 8>(skip + row, unit));
    }
  }
  /// All threads have stored, and read shared memory.
  __device__ void finish(Tile, bool) { __syncthreads(); }

  /// One thread speaks for the block: its release covers what the others stored before the block met.
  template <class F>
  __device__ void publish(F&& announce) {
    if (threadIdx.x == 0) announce();
  }

 private:
  __device__ bool gated() const { return operands_.epilogue.gated; }

  __device__ void stage(Tile tile) {
    int const thread = ptx::thread_now(), lane = thread % 32;
    int const top = warp_row<S>(thread) + lane / 4, left = warp_column<S>(thread) / (gated() ? 2 : 1);
    int const column = tile.n * (gated() ? S::kN / 2 : S::kN) + left;
#pragma unroll
    for (int i = 0; i < S::kRows16; ++i) {
      auto& d = reinterpret_cast<float(&)[S::kWarpN / 2]>(d_[i]);
      int const row = top + i * 16;
      if constexpr (S::kScaled) scale_product(d, column, tile, row);
      finish_product(d, column);
#pragma unroll
      for (int u = 0; u < S::kColumns8; ++u) {
        if (gated() && u >= S::kColumns8 / 2) continue;
#pragma unroll
        for (int low = 0; low < 2; ++low)
          *reinterpret_cast<uint32_t*>(shared_ + swizzled<S::kN / 8>(row + 8 * low, left / 8 + u) + lane % 4 * 2) =
              pack(d[4 * u + 2 * low], d[4 * u + 2 * low + 1], T{});
      }
    }
    __syncthreads();
  }

  __device__ void scale_product(float (&d)[S::kWarpN / 2], int column, Tile tile, int row) const {
    if constexpr (std::is_same_v<typename S::T, int8_t>)
#pragma unroll
      for (float& x : d) x = __int2float_rn(__float_as_int(x));
    if (float const* const scales = operands_.row_scales) {
      auto of = [&](int i) { return i < tile.rows ? __ldg(scales + tile.row + i) : 0.f; };
      float const upper = of(row), lower = of(row + 8);
#pragma unroll
      for (int i = 0; i < S::kWarpN / 2; ++i) d[i] *= i % 4 < 2 ? upper : lower;
    }
    if (float const* const scales = operands_.column_scales)
      each_pair<S::kWarpN, true>(scales, gated(), column, operands_.columns, operands_.up, [&](int u, float2 scale) {
        d[4 * u] *= scale.x, d[4 * u + 1] *= scale.y, d[4 * u + 2] *= scale.x, d[4 * u + 3] *= scale.y;
      });
  }

  __device__ void finish_product(float (&d)[S::kWarpN / 2], int column) const {
    Epilogue const& e = operands_.epilogue;
    if (e.bias || e.gated || e.curved) flux::finish<S::kWarpN, true, T>(e, d, column, operands_.columns, operands_.up);
    if (counts_.poisoned)
#pragma unroll
      for (float& x : d) x = __int_as_float(0x7fffffff);
  }

  Operands const& operands_;
  Watch const* watch_;  // of a gate that waits, otherwise null
  T* shared_;
  Counts& counts_;
  Loader<S> loader_;
  Maths<S> maths_;
  typename Maths<S>::Accumulators d_;
};

}  // namespace flux::sm80
