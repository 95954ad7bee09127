#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace flux {

/// How the rows of AG+GEMM come to a rank.
enum class Transport {
  kPush,    ///< each rank's copy engine writes its shard to the others
  kPull,    ///< each rank's copy engine reads the others' shards
  kRemote,  ///< the GEMM reads the rows where they lie
};
/// Between which ranks the traffic runs.
enum class Path { kDirect, kRing };
/// Where the finished tiles of GEMM+RS and GEMM+AR go (see src/tile/route.h). `kAuto`: few rows on GPUs by one kernel,
/// in packets that are data and word at once (src/tile/packet.h; of AG+GEMM too, where all knobs of its copies are
/// open); otherwise stage where GPUs reach each other across PCIe, which holds up direct stores, and push everywhere
/// else. `kPackets` is kAuto by another name, so that a line can say it.
enum class RouteKind { kAuto, kPackets, kPush, kStage, kSum, kRing };
/// What stores finished tiles on a GPU: copies of whole boxes, copies row by row, or vectors of 16 bytes by a warp. The
/// host engine has one way.
enum class StoreKind { kTensor, kBulk, kVector };
/// GEMM+AR: `kOneShot` sends every partial to every rank, `kTwoShot` sums at the owner, who sends the sums back.
/// `kAuto`: of packets as suits their number, otherwise two.
enum class Shots { kAuto, kOneShot, kTwoShot };

/// Plan::comm_rows: a shard is one communication tile.
inline constexpr int64_t kWholeShard = INT64_MAX;
/// Plan::copy_blocks: as suits the link and the size.
inline constexpr int kChosenCopies = -1;

/// Every choice FLUX makes for an operator, as a value: it prints in one line, and that line can be given back.
///
/// The defaults leave every choice open. An operator made with them (`workers`, `wide_slots`, `buffers`, `spare` and
/// `lane`, which say what it may use, set as you like) goes by the plan that was tuned for its problem, if rank 0 has
/// one in its table; else by that of a near number of rows, if the simulator expects it to be faster; else by rules
/// that are right on any machine. Any other word, even one that is true anyway (`route=stage`), and it goes by exactly
/// this.
struct Plan {
  bool fused = true;     ///< false: communication and GEMM one after the other
  bool in_order = true;  ///< tiles follow arrival (AG) or leave for rotating owners (RS); false: top to bottom
  int block_m = 0;       ///< rows of a GEMM tile; both 0: the engine's choice
  int block_n = 0;       ///< columns of a GEMM tile
  int band = 0;          ///< tile rows visited together, for the sake of L2; 0: the engine's choice
  int workers = 1;       ///< host engine: threads a rank
  Transport transport = Transport::kPush;
  Path path = Path::kDirect;
  int64_t comm_rows = 0;            ///< rows of a communication tile, of AG and of route=stage; 0: the engine's choice
  int copy_blocks = kChosenCopies;  ///< GPUs: what carries rows, 0: the copy engine, else so many blocks of the GPU
  int k_slices = 1;                 ///< slices of k that arrive one by one
  RouteKind route = RouteKind::kAuto;
  StoreKind store = StoreKind::kTensor;
  bool wide_slots = false;  ///< partial sums travel in fp32 whatever the dtype
  Shots shots = Shots::kAuto;
  int buffers = 2;  ///< of shared memory, used in turn; with 1 a call begins when every rank has ended the one before
  int spare = 0;    ///< multiprocessors that a GPU's GEMMs leave free: 2 where operators run side by side on one GPU
  int lane = 0;     ///< operators called side by side, each in a thread or stream of its own, take lanes of their own

  bool operator==(Plan const&) const = default;
};

/// `fused=yes order=follow tile=auto band=auto workers=1 transport=push path=direct comm_rows=auto copies=auto
/// k_slices=1 route=auto store=tensor slots=dtype shots=auto buffers=2 spare=0 lane=0`
std::string to_string(Plan const& plan);

/// Reads such a line; what it does not name keeps `base`'s value. Throws `Error{kInvalid}` naming the word and what is
/// allowed.
Plan parse_plan(std::string_view line, Plan const& base = {});

}  // namespace flux
