#pragma once
// What a kernel of CUTLASS gets to overlap its communication: three parts, each derived from a stock one. The mainloop
// waits for a tile's rows (a gate), the tile scheduler follows their arrival (a schedule), the epilogue stores a tile
// at its owner and tells it (a route). Clusters are of one block, and a tile's rows belong to one owner.
#include <cutlass/device_kernel.h>  // of CUTLASS, what this chip needs
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/builders/sm90_gmma_builder.inl>
#include <cutlass/gemm/collective/sm90_mma_tma_gmma_ss_warpspecialized.hpp>
#include <cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_cooperative.hpp>

#include "engine/ptx/bulk.h"
#include "tile/gate.h"
#include "tile/route.h"

constexpr int kTile = 128;  // rows and columns

/// The parameters that a stock part makes of its arguments, and ours, to be set after that.
template <class Stock, class Ours>
struct With : Stock {
  With() = default;
  With(Stock const& stock) : Stock(stock) {}
  Ours ours;
};

/// Mainloop: before a tile is loaded, the loading warp waits for its rows.
template <class Stock>
struct Gated : Stock {
  using Params = With<typename Stock::Params, flux::Arrival>;
  CUTLASS_DEVICE void load(Params const& params, auto pipeline, auto state, auto& inputs, auto& tile, auto&&... rest) {
    if (cute::elect_one_sync()) {  // always the same thread: it also issues the loads
      // False after the limit, with all abort words up; an operator then poisons y. Here the buffer is full of NaN.
      params.ours.wait({cute::get<0>(tile) * kTile, kTile}, 0);
      flux::ptx::fence_bulk_loads();
    }
    __syncwarp();
    Stock::load(params, pipeline, state, inputs, tile, rest...);
  }
};

/// Tile scheduler: each block takes every gridDim-th tile of the schedule.
struct Ordered : cutlass::gemm::kernel::detail::PersistentTileSchedulerSm90 {
  using Params = With<PersistentTileSchedulerSm90::Params, flux::Schedule>;
  flux::Schedule const& order;
  uint32_t next = blockIdx.x;
  CUTLASS_DEVICE explicit Ordered(Params const& params) : order(params.ours) {}
  CUTLASS_DEVICE WorkTileInfo initial_work_tile_info(auto) const {
    if (next >= order.size()) return WorkTileInfo::invalid_work_tile();
    flux::Tile const tile = order[next];
    return {static_cast<int>(tile.row) / kTile, tile.n, 0, true};
  }
  CUTLASS_DEVICE auto fetch_next_work(WorkTileInfo, auto&&...) {
    next += gridDim.x;
    return cute::make_tuple(initial_work_tile_info(0), true);
  }
};
template <class Tile, class Cluster, uint32_t kStages>
struct cutlass::gemm::kernel::detail::TileSchedulerSelector<Ordered, cutlass::arch::Sm90, Tile, Cluster, kStages> {
  using Scheduler = Ordered;
};

/// Epilogue: a tile goes into our slot at its owner; whoever wrote the last one of a band sets the owner's word.
template <class Stock>
struct Pushed : Stock {
  struct Ours {
    flux::Push route;
    typename Stock::Params at[flux::kMaxRanks];  // of each owner: a tensor map of its slots
  };
  using Params = With<typename Stock::Params, Ours>;
  Ours const& ours;
  CUTLASS_DEVICE Pushed(Params const& params, auto& shared) : Stock(params, shared), ours(params.ours) {}
  template <class Load, class Loaded, class Store, class Stored, class Shape, class Block, class Tile, class Sums,
            class Mma>
  CUTLASS_DEVICE auto store(Load load, Loaded loaded, Store store, Stored stored, Shape shape, Block block, Tile tile,
                            Sums const& sums, Mma mma, int thread, auto& shared, int part) {
    int64_t const row = cute::get<0>(tile) * kTile;
    flux::Place const band = ours.route.shards().band({row, kTile}), to = ours.route.where(band, row, 0);
    cute::get<0>(tile) = static_cast<int>(to.row) / kTile;
    auto const next = Stock(ours.at[to.rank], shared)
                          .store(load, loaded, store, stored, shape, block, tile, sums, mma, thread, shared, part);
    if (thread / 32 == 0) {               // the warp that issued the tile's stores
      flux::ptx::await_bulk_stores<0>();  // until they are written; CUTLASS waits until shared memory is read
      __syncwarp();
      if (thread == 0) ours.route.announce(band);
    }
    return next;
  }
};
