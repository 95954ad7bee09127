#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flux/error.h"

struct CUstream_st;

namespace flux {

/// A CUDA stream (cudaStream_t). Operators of worlds on GPUs are enqueued on one; on the host it is nullptr.
using Stream = CUstream_st*;

/// A link that is declared, not real: the host worlds move the data at once and then wait out the time the link would
/// have needed, without using a core. `gbps` in 10⁹ bytes per second for each rank's outgoing traffic; 0: no declared
/// link.
struct Link {
  double gbps = 0;
  double latency_us = 0;
};

/// Where a rank's operators run, beside the index of a GPU.
inline constexpr int kHostEngine = -1;
inline constexpr int kGpuByRank =
    -2;  ///< by rank: neighbours on one NUMA node (`flux doctor` tells), in turn if too few

struct WorldOptions {
  Link link;
  Link nic;                    ///< the same between nodes: of each rank's network interface, beside what sockets take
  double warn_seconds = 30;    ///< a wait this long is said once, on stderr
  double limit_seconds = 600;  ///< a wait this long ends the call on every rank
  int device = kHostEngine;    ///< of World::processes: this rank's GPU, kGpuByRank or kHostEngine
  /// Nodes that the world spans, of equally many ranks that follow each other. 0: $FLUX_NODES, or else found: ranks
  /// that can share memory make a node. More than there are let one machine play several. Between nodes rows go through
  /// sockets. Host engine only.
  int nodes = 0;
  /// The file of tuned plans, of which rank 0's counts for all ranks: operators whose plan leaves the choice look there
  /// (see Plan). Empty: $FLUX_PLAN_CACHE, or flux/plans.json among the user's caches; `none`: no file. One that is not
  /// there, torn, foreign or not to be written is no error; what is wrong with it is said on stderr.
  std::string plan_cache = {};
  /// More than 0, on rank 0: such an operator whose very problem is in no table is tuned before it is made, which takes
  /// about so long and memory for some nine operators. Not where it is given a Workspace.
  double tune_seconds = 0;
};

/// One rank's way to the memory of another's GPU, as it was when the world was made: copies, words behind copies,
/// stores and loads of a kernel were tried, and what arrived was compared by both ranks.
struct LinkProof {
  int from = 0, to = 0;
  std::string way;  ///< `NVLink`, `PCIe`, `same GPU`, `not visible here` or `host memory`
  bool works = false;
  std::string reason;  ///< why it does not work
};

/// How ranks find each other before they share memory: one collective operation. Implementations: threads of a process,
/// the launcher (`flux launch`), MPI, or a callable (torch.distributed from Python).
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Every rank's bytes, in rank order. Throws `Error{kTimeout}` when a rank does not come within `limit_seconds`.
  virtual std::vector<std::string> all_gather(std::string_view mine, double limit_seconds) = 0;
  /// The world has ended with an error: a rank may be gone, nothing may wait for all of them any more.
  virtual void abandon() {}
};

using AllGatherBytes = std::function<std::vector<std::string>(std::string_view mine)>;
/// A bootstrap out of any function that gathers bytes. Bounding its waits is the function's business.
std::unique_ptr<Bootstrap> bootstrap_from(int rank, int size, AllGatherBytes all_gather);
/// The launcher's: reads FLUX_RANK, FLUX_WORLD_SIZE and FLUX_BOOTSTRAP, which `flux launch` sets.
std::unique_ptr<Bootstrap> bootstrap_from_launcher();
/// MPI's, under mpirun. Throws `Error{kUnsupported}` in a build without MPI.
std::unique_ptr<Bootstrap> bootstrap_from_mpi();
/// Whichever of the two the environment speaks of, or none.
std::unique_ptr<Bootstrap> bootstrap_from_environment();

/// What plays the memory of the ranks that a mirror leaves out.
enum class Partner {
  kNone,
  kHost,    ///< pinned host memory: a PCIe link
  kDevice,  ///< memory of the same GPU: no link
};

class Team;  // the shared state behind a world (src/world/team.h)

/// The ranks that work together, seen from one of them. All its calls are made by every rank, in the same order.
class World {
 public:
  /// Ranks are processes; those of a host share memory (WorldOptions::nodes). With `options.device` each is on a GPU of
  /// one host, and memory is that of the GPUs; several may be on the same one, which then serves them in turn.
  /// Collective: where one rank cannot come in, or none of the ways to reach the others serves, every rank throws the
  /// same Error. The ways of GPUs: GPU memory, pinned host memory, NCCL; the environment's FLUX_PEERS, the same on
  /// every rank, is auto (the first that serves), host or nccl.
  static std::unique_ptr<World> processes(std::unique_ptr<Bootstrap> bootstrap, WorldOptions const& options = {});

  /// Rank `rank` of `ranks` on GPU 0, alone: it sends its peers all they would get, into `partner` memory, and a replay
  /// by copy engines sends it as many bytes, no earlier than peers in lock step would. For measuring on one GPU; what
  /// comes in is what that memory holds. docs/measuring.md.
  static std::unique_ptr<World> mirror(int rank, int ranks, Partner partner, WorldOptions const& options = {});

  explicit World(std::unique_ptr<Team> team);
  ~World();

  int rank() const;
  int size() const;
  int nodes() const;              ///< each of size() / nodes() ranks that share memory
  std::string_view kind() const;  ///< `threads`, `processes`, `devices`, `shared gpu` or `mirror`
  bool on_gpu() const;            ///< operators take tensors in GPU memory and a stream
  /// The links between the ranks' GPUs, for every pair in both directions; none where there are none, or one GPU is
  /// shared by threads. Where one does not work, processes meet in host memory (the links are then those) or go through
  /// NCCL, communication and GEMM one after the other, which is said on stderr; otherwise, and for threads, the world
  /// is not made.
  std::vector<LinkProof> const& links() const;
  Link link() const;
  /// Sets the declared link for the calls to come. Every rank gives the same.
  void set_link(Link link);

  void barrier();
  std::vector<std::string> all_gather(std::string_view mine);
  /// Throws the error that ended the world, if one did. An ended world stays ended; a new one works.
  void check() const;

  Team& team() { return *team_; }

 private:
  std::unique_ptr<Team> team_;
};

/// Runs `body` once for each of `ranks` ranks, each a thread of this process, and returns when all are done. If ranks
/// fail, throws the error of the first to fail.
void run_threads(int ranks, WorldOptions const& options, std::function<void(World&)> const& body);
/// The same with rank r on GPU r, which is the thread's current device. Throws Error{kUnsupported} where there are not
/// as many GPUs, or where they cannot reach each other's memory.
void run_devices(int ranks, WorldOptions const& options, std::function<void(World&)> const& body);
/// The same with all ranks on GPU 0, each on a part of its multiprocessors: the real kernels, for tests. Set
/// CUDA_DEVICE_MAX_CONNECTIONS=32 before the first use of CUDA, or ranks' streams hold each other up.
void run_shared_gpu(int ranks, WorldOptions const& options, std::function<void(World&)> const& body);

}  // namespace flux
