#pragma once
// What a plan means for a problem on a machine: every `auto` decided, as the operators decide it.
#include "flux/plan.h"
#include "plan/pieces.h"
#include "plan/tile_shapes.h"
#include "tile/gate.h"
#include "tile/route.h"

namespace flux {

/// How partial sums travel. `kNone`: AG+GEMM has none.
enum class Way { kNone, kPush, kStage, kSum, kRing, kBroadcast, kPackets };

struct Resolved {
  Problem problem;
  Plan plan;  ///< of which transport, k_slices and store are read
  TileRow shape;
  int band = 1;  ///< of the raster
  bool fused = true;
  int copying = 0;     ///< blocks of the GPU that carry rows or partials; 0: the copy engine does
  int processors = 0;  ///< that the GEMM has beside them
  Way way = Way::kNone;
  PacketShots shots = PacketShots::kNone;  ///< by packets
  Order order = Order::kNaive;
  Tiling tiling = Tiling::kAcross;
  int together = 0;                 ///< as arrange() takes it
  ArrivalWords arrival;             ///< AG+GEMM
  BandWords bands;                  ///< the others
  double tile_us = 0, gemm_us = 0;  ///< of one tile; of the whole GEMM in these tiles, alone
  double memory_share = 0;  ///< of the memory's rate, what tiles take that read weights again for each band of rows

  bool in_place() const { return way == Way::kNone && plan.transport == Transport::kRemote; }
  /// Stored here first, then carried.
  bool staged() const { return way == Way::kStage || way == Way::kRing; }
  int64_t tiles_n() const { return (problem.local_n() + shape.tile_n - 1) / shape.tile_n; }
  Schedule schedule(int rank) const;
};

/// Throws Error{kUnsupported} with the reason where no operator serves this plan, Error{kInvalid} for a problem that
/// makes no sense.
Resolved resolve(Problem const& problem, Plan const& plan, Machine const& machine);

/// Of the kernel that exchanges rows or partial sums by packets: until the first leave; and of each shot, until they
/// are seen and added up.
inline constexpr double kPacketsStartUs = 2.5, kPacketsTripUs = 1.5;
/// Bytes of a row in packets.
double packet_row_bytes(Problem const& problem);
/// The whole of that kernel.
double packets_us(Problem const& problem, PacketShots shots, Machine const& machine);

/// Times of the problem's parts alone, in microseconds.
struct Parts {
  double gemm_us = 0;        ///< the best unsplit GEMM, by library or engine
  double collective_us = 0;  ///< the same bytes by the collective library
  double none_us = 0;        ///< that GEMM, then that collective: what overlap is compared with
  double copied_us = 0;      ///< the same bytes by copies or by the collective library, whichever is faster
  double comm_us = 0;        ///< the same by those or by a kernel of the GPU
  double least_comm_us = 0;  ///< by any mechanism, stores and loads of a kernel too
  double clock_mhz = 0;      ///< at which the GEMM runs
  double floor_us() const { return gemm_us > least_comm_us ? gemm_us : least_comm_us; }
};
Parts parts(Problem const& problem, Machine const& machine);

}  // namespace flux
