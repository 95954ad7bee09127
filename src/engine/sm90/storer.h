#pragma once
// The storer: sends finished chunks away, by one thread that asks the copy engine or by a warp that stores vectors.
// Slow memory (a peer's) holds back the maths only once all staging slots are full.
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

  static __device__ bool leads() { return threadIdx.x % 32 == 0; }
  /// When the first chunk of the last tile was ready, where times are taken.
  __device__ int64_t began_ns() const { return began_ns_; }

  /// Whether the storer warp's `lane` is needed. Lane 0 alone speaks to the other roles.
  __device__ bool takes_part(unsigned lane) const {
    return lane == 0 || (lane < 32 && operands_.store == StoreKind::kVector);
  }

  /// Takes note of a band: rows of the tile from `skip` on, where the one before ended, go to `to`. A tile holds
  /// kMaxRanks of them at most. Bands that lie there as they lie in the tile are one.
  __device__ void store(Place to, int skip, Write write) {
    if (operands_.within.ranks > 1) to = operands_.within.band({to.row, to.rows});
    int const slot = static_cast<int>(quotient(to.row, operands_.slot_rows));
    int const row = static_cast<int>(to.row - slot * operands_.slot_rows) - skip,
              end = skip + static_cast<int>(to.rows);
    bool const goes_on = bands_ > 0 && last_rank_ == to.rank && last_row_ == row;
    if (goes_on) {
      if (leads()) shared_.bands[bands_ - 1].end = end;
      return;
    }
    last_rank_ = to.rank, last_row_ = row;
    if (leads()) shared_.bands[bands_] = {to.rank, slot, row, skip, end, write == Write::kAdd};
    ++bands_;
  }

  /// Sends the tile's chunks, in the order in which the maths stages them. An `announced` tile is handed to the
  /// announcer later: once it is written while nothing else is ready, or while the next tile's chunks are on their way.
  __device__ void finish(Tile tile, bool announced) {
    bool const halved = S::config.gateable(S::kLayout) && operands_.epilogue.gated;
    int const columns = halved ? S::kColumns / 2 : S::kColumns;
    int const column = first_column<S>(tile, halved);
    int const top = S::kClusterM > 1 ? rank_in_cluster() * S::kM : 0;
    if (pending_ && !shared_.ready[0][slot_.stage].test_wait(slot_.phase)) settle();
#pragma unroll 1
    for (int block = 0; block < S::kBlocks; ++block)
#pragma unroll 1
      for (int c = 0; c < columns; ++c, slot_.next())
#pragma unroll 1
        for (int ring = 0; ring < S::kRings; ++ring) {
          if (in_flight_ == kMost) hand_back();  // with a slot free, the next chunk is sure to come
          shared_.ready[ring][slot_.stage].wait(slot_.phase);
          if (operands_.stamps && block + c + ring == 0) began_ns_ = now_ns();
          send(shared_.c[ring][slot_.stage], top + ring * S::kGroupM + block * 64, column + c * S::kChunkN);
          cute::tma_store_arrive();
          ++in_flight_;
          settle<1>();  // all but this chunk
        }
    while (in_flight_ > 0) hand_back();  // all chunks are read; not yet: written
    bands_ = 0, pending_ = announced;
  }

  /// Waits until the last tile is written, if it is to be announced, and tells the announcer.
  template <int kYounger = 0>
  __device__ void settle() {
    if (!pending_) return;
    pending_ = false;
    if (!leads()) return;
    ptx::await_bulk_stores<kYounger>();
    shared_.performed.advance();
  }

 private:
  static constexpr bool kSwizzled = S::kChunkN == 64;

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
    if (leads()) shared_.drained[oldest_ % S::kRings][oldest_ / S::kRings].arrive();
    if (++oldest_ == S::kRings * S::kSlots) oldest_ = 0;
  }

  // Band by band. A tensor store needs a band that reaches above the chunk or to its top: the map's extents end where
  // the band does, so rows behind it are dropped, but before the extents nothing can be dropped (the copy engine takes
  // no negative rows in a store). So a band that begins within the chunk goes row by row.
  __device__ void send(typename S::T const* chunk, int row, int column) {
    bool const vectors = operands_.store == StoreKind::kVector;
    if (vectors) __syncwarp();  // the bands are noted
#pragma unroll 1
    for (int i = 0; i < bands_; ++i) {
      Band const& band = shared_.bands[i];
      if (row >= band.end || row + 64 <= band.first) continue;
      if (vectors)
        send_vectors(chunk, band, row, column);
      else if (row < band.first || operands_.store == StoreKind::kBulk)
        send_rows(chunk, band, row, column);
      else
        send_box(chunk, band, row, column);
    }
    if (vectors) __syncwarp();  // all lanes have read the slot, and what they wrote is lane 0's to tell of
  }

  __device__ void send_box(typename S::T const* chunk, Band const& band, int row, int column) {
    CUtensorMap const* const map = &operands_.c[band.rank];
    if (band.add)
      cute::SM90_TMA_REDUCE_ADD_3D::copy(map, chunk, column, band.row + row, band.slot);
    else
      cute::SM90_TMA_STORE_3D::copy(map, chunk, column, band.row + row, band.slot);
  }

  __device__ void send_rows(typename S::T const* chunk, Band const& band, int row, int column) {
    constexpr int kPiece = kSwizzled ? 8 : S::kChunkN;  // elements that lie together in the chunk
    typename S::T* const to = first_row(band, column);
    int const columns = min(S::kChunkN, operands_.columns - column);
#pragma unroll 1
    for (int r = max(band.first, row); r < min(band.end, row + 64); ++r)
#pragma unroll 1
      for (int x = 0; x < columns; x += kPiece) {
        int const at = kSwizzled ? x ^ (r - row) % 8 * 8 : x;
        typename S::T const* const from = chunk + (r - row) * S::kChunkN + at;
        int const bytes = min(kPiece, columns - x) * 2;
        if (band.add)
          ptx::bulk_add(to + r * operands_.c_stride + x, from, bytes);
        else
          ptx::bulk_store(to + r * operands_.c_stride + x, from, bytes);
      }
  }

  // Lanes side by side store side by side.
  __device__ void send_vectors(typename S::T const* chunk, Band const& band, int row, int column) {
    constexpr int kUnits = S::kChunkN / 8;  // of 16 bytes
    typename S::T* const to = first_row(band, column);
    int const columns = operands_.columns - column, end = (min(band.end, row + 64) - row) * kUnits;
#pragma unroll 2
    for (int i = max(band.first - row, 0) * kUnits + threadIdx.x % 32; i < end; i += 32) {
      int const r = i / kUnits, unit = i % kUnits;
      if (unit * 8 < columns)
        *reinterpret_cast<uint4*>(to + (row + r) * operands_.c_stride + unit * 8) =
            reinterpret_cast<uint4 const*>(chunk)[kSwizzled ? i ^ r % 8 : i];
    }
  }

  /// Where the tile's first row would lie in the band's slot, from `column` on.
  __device__ typename S::T* first_row(Band const& band, int column) const {
    return static_cast<typename S::T*>(operands_.c_rows.at(band.rank)) +
           (band.slot * operands_.slot_rows + band.row) * operands_.c_stride + column;
  }

  Operands const& operands_;
  Shared<S>& shared_;
  static constexpr int kMost = S::kRings * S::kSlots < 4 ? S::kRings * S::kSlots : 4;  // stores in flight
  int bands_ = 0, in_flight_ = 0;
  int last_rank_ = 0, last_row_ = 0;  // of the last band
  int oldest_ = 0;                    // slot of the oldest store in flight, rings side by side
  Ring<S::kSlots> slot_;
  int64_t began_ns_ = 0;
  bool pending_ = false;  // the last tile is yet to be handed to the announcer
};

}  // namespace flux::sm90
