#pragma once
// The storer: one thread that sends finished chunks away. Slow memory (a peer's) holds back the maths only once all
// staging slots are full.
#include <cute/arch/copy_sm90_tma.hpp>

#include "engine/ptx/bulk.h"
#include "engine/sm90/operands.h"
#include "engine/sm90/shared.h"
#include "tile/route.h"

namespace flux::sm90 {

template <class S>
class Storer {
 public:
  __device__ Storer(Operands const& operands, Shared<S>& shared) : operands_(operands), shared_(shared) {}

  /// Takes note of a band: rows of the tile from `skip` on go to `to`. A tile holds kMaxRanks of them at most.
  __device__ void store(Place to, int skip, Write write) {
    if (operands_.within.ranks > 1) to = operands_.within.band({to.row, to.rows});
    int const slot = static_cast<int>(quotient(to.row, operands_.slot_rows));
    shared_.bands[bands_++] = {to.rank,
                               slot,
                               static_cast<int>(to.row - slot * operands_.slot_rows) - skip,
                               skip,
                               skip + static_cast<int>(to.rows),
                               write == Write::kAdd};
  }

  /// Sends the tile's chunks, in the order in which the maths stages them.
  __device__ void finish(Tile tile) {
    bool const halved = S::config.gateable(S::kLayout) && operands_.epilogue.gated;
    int const columns = halved ? S::kColumns / 2 : S::kColumns;
    int const column =
        (tile.n * S::kClusterN + (S::kClusterN > 1 ? rank_in_cluster() : 0)) * (halved ? S::kN / 2 : S::kN);
    int const top = S::kClusterM > 1 ? rank_in_cluster() * S::kM : 0;
#pragma unroll 1
    for (int block = 0; block < S::kBlocks; ++block)
#pragma unroll 1
      for (int c = 0; c < columns; ++c, slot_.next())
#pragma unroll 1
        for (int ring = 0; ring < S::kRings; ++ring) {
          if (in_flight_ == kMost) hand_back();  // with a slot free, the next chunk is sure to come
          shared_.ready[ring][slot_.stage].wait(slot_.phase);
          send(shared_.c[ring][slot_.stage], top + ring * S::kGroupM + block * 64, column + c * S::kChunkN);
          cute::tma_store_arrive();
          ++in_flight_;
        }
    while (in_flight_ > 0) hand_back();  // all chunks are read; not yet: written
    bands_ = 0;
  }

 private:
  // Waits until the oldest store in flight has read its slot.
  __device__ void hand_back() {
    if (in_flight_ == 4)
      cute::tma_store_wait<3>();
    else if (in_flight_ == 3)
      cute::tma_store_wait<2>();
    else if (in_flight_ == 2)
      cute::tma_store_wait<1>();
    else
      cute::tma_store_wait<0>();
    --in_flight_;
    shared_.drained[oldest_ % S::kRings][oldest_ / S::kRings].arrive();
    if (++oldest_ == S::kRings * S::kSlots) oldest_ = 0;
  }

  // One store a band that the chunk has rows of. The map's extents end where the band does, so rows behind it are
  // dropped. Before the extents nothing can be dropped (the copy engine takes no negative rows in a store), so a band
  // that begins within the chunk goes row by row.
  __device__ void send(typename S::T const* chunk, int row, int column) {
#pragma unroll 1
    for (int i = 0; i < bands_; ++i) {
      Band const& band = shared_.bands[i];
      if (row >= band.end || row + 64 <= band.first) continue;
      if (row < band.first) {
        send_rows(chunk, band, row, column);
        continue;
      }
      CUtensorMap const* const map = &operands_.c[band.rank];
      if (band.add)
        cute::SM90_TMA_REDUCE_ADD_3D::copy(map, chunk, column, band.row + row, band.slot);
      else
        cute::SM90_TMA_STORE_3D::copy(map, chunk, column, band.row + row, band.slot);
    }
  }

  __device__ void send_rows(typename S::T const* chunk, Band const& band, int row, int column) {
    constexpr bool kSwizzled = S::kChunkN == 64;
    constexpr int kPiece = kSwizzled ? 8 : S::kChunkN;  // elements that lie together in the chunk
    typename S::T* const base = static_cast<typename S::T*>(operands_.c_rows.at(band.rank)) +
                                (band.slot * operands_.slot_rows + band.row) * operands_.c_stride + column;
    int const columns = min(S::kChunkN, operands_.columns - column);
#pragma unroll 1
    for (int r = band.first; r < min(band.end, row + 64); ++r)
#pragma unroll 1
      for (int x = 0; x < columns; x += kPiece) {
        int const at = kSwizzled ? x ^ (r - row) % 8 * 8 : x;
        typename S::T const* const from = chunk + (r - row) * S::kChunkN + at;
        int const bytes = min(kPiece, columns - x) * 2;
        if (band.add)
          ptx::bulk_add(base + r * operands_.c_stride + x, from, bytes);
        else
          ptx::bulk_store(base + r * operands_.c_stride + x, from, bytes);
      }
  }

  Operands const& operands_;
  Shared<S>& shared_;
  static constexpr int kMost = S::kRings * S::kSlots < 4 ? S::kRings * S::kSlots : 4;  // stores in flight
  int bands_ = 0, in_flight_ = 0;
  int oldest_ = 0;  // slot of the oldest store in flight, rings side by side
  Ring<S::kSlots> slot_;
};

}  // namespace flux::sm90
