#pragma once
// One Hopper block: a gatekeeper, a loader, maths warpgroups, a storer and an announcer run the loop of src/tile side
// by side. docs/engines.md draws it.
#include <cutlass/arch/reg_reconfig.h>

#include "engine/ptx/grids.h"
#include "engine/sm90/loader.h"
#include "engine/sm90/maths.h"
#include "engine/sm90/storer.h"
#include "tile/loop.h"

namespace flux::sm90 {

template <class S>
class Engine {
 public:
  static constexpr bool kRoles = true;

  __device__ Engine(Operands const& operands, Watch const* watch, Shared<S>& shared)
      : shared_(shared),
        watch_(watch),
        stamps_(operands.stamps),
        rows_to_come_(operands.rows_to_come),
        loader_(operands, shared),
        maths_(operands, shared),
        storer_(operands, shared) {}

  // The blocks of a cluster work on one tile of the schedule.
  __device__ int first() const { return blockIdx.x / S::kCluster; }
  __device__ int stride() const { return gridDim.x / S::kCluster; }

  // Each role works out its first tile before the block meets: that hides what the parameters take to arrive.
  template <class Start, class Wait, class Load, class Multiply, class Store, class Announce>
  __device__ void roles(Start&& start, Wait&& wait, Load&& load, Multiply&& multiply, Store&& store,
                        Announce&& announce) {
    constexpr int kMaths = S::kGroups * 128;
    shared_.init();
    if (threadIdx.x >= kMaths) {
      if constexpr (S::kGroups == 2) cutlass::arch::warpgroup_reg_dealloc<S::config.registers_beside()>();
      if (threadIdx.x == kMaths) loader_.prepare();
      auto const walk = start();
      meet();
      if (threadIdx.x == kMaths) load(walk);
      __syncwarp();
      part();  // the others touch no other block: they part before they begin
      if (storer_.takes_part(threadIdx.x - kMaths - 32)) {
        store(walk);
        storer_.settle();
      }
      if (threadIdx.x == kMaths + 64) announce(walk);
      if (threadIdx.x >= kMaths + 96) wait(walk);
      __syncwarp();
    } else {
      if constexpr (S::kGroups == 2) cutlass::arch::warpgroup_reg_alloc<S::config.registers_of_maths()>();
      auto const walk = start();
      maths_.begin();
      meet();
      multiply(walk);
      part();
    }
    if constexpr (S::kCluster > 1) cute::cluster_wait();
  }

  template <class F>
  __device__ bool timed(Phase phase, Tile tile, F&& f) {
    if (phase == Phase::kMaths || !stamps_) return f();
    int64_t const begin = now_ns();
    bool const ok = f();
    bool const stores = phase == Phase::kStore;
    if (threadIdx.x % 32 == 0)
      stamps_.add(blockIdx.x, phase, stamped_++, tile, stores ? storer_.began_ns() : begin, now_ns());
    return ok;
  }

  /// A wait that failed, or a world that ended, poisons what is stored from now on; the roles go on in step.
  __device__ bool check(bool ok) {
    if (!ok) *const_cast<int volatile*>(&shared_.poisoned) = 1;
    return true;
  }
  /// A warp waits, each lane for an owner of the tile's rows.
  __device__ Party party() const { return {static_cast<int>(threadIdx.x % 32), 32}; }
  /// What the wait acquired is ordered before the bulk loads that the loader issues once it knows.
  __device__ bool admit(bool ok) {
    ok = __all_sync(~0u, ok);  // and lane 0 sees what the others acquired
    if (threadIdx.x % 32 > 0) return true;
    check(ok && !aborted(*watch_));
    ptx::fence_bulk_loads();
    shared_.admitted.advance();
    return true;
  }

  /// Where the rows may be late the weights are asked for first, as far as stages are free.
  __device__ void load(Place from, Tile tile, Rows k) {
    if (rows_to_come_) {  // of the kernel before, which this one began beside
      loader_.ahead(tile, k);
      ptx::await_grid_before();
      rows_to_come_ = false;
    }
    if (watch_) {
      loader_.ahead(tile, k);
      shared_.admitted.await(++loaded_);
    }
    if (stamps_ && k.first == 0) stamps_.add(blockIdx.x, Phase::kMaths, stamped_++, tile, now_ns(), 0);
    loader_.load(from, tile, k);
  }
  __device__ void multiply(Tile tile, Rows k) { maths_.multiply(tile, k); }
  __device__ void store(Place to, int skip, Tile, Write write) { storer_.store(to, skip, write); }
  __device__ void finish(Tile tile, bool announced) { storer_.finish(tile, announced); }

  template <class F>
  __device__ void publish(F&& announce) {
    shared_.performed.await(++published_);
    announce();
  }

 private:
  static __device__ void meet() {
    if constexpr (S::kCluster > 1)
      cute::cluster_sync();
    else
      __syncthreads();
  }

  // Nobody leaves (waits above) before the other block of the cluster can write and signal here no more.
  static __device__ void part() {
    if constexpr (S::kCluster > 1) cute::cluster_arrive();
  }

  Shared<S>& shared_;
  Watch const* watch_;  // of a gate that waits, otherwise null
  Stamps const& stamps_;
  bool rows_to_come_;  // by the loader
  Loader<S> loader_;
  Maths<S> maths_;
  Storer<S> storer_;
  uint32_t loaded_ = 0, published_ = 0;  // by loader, announcer
  uint32_t stamped_ = 0;                 // by gatekeeper, loader or storer, each its own
};

}  // namespace flux::sm90
