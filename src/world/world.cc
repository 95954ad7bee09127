#include "flux/world.h"

#include <exception>
#include <mutex>
#include <thread>

#include "world/bootstrap.h"
#include "world/gpu_report.h"
#include "world/nodes.h"
#include "world/team.h"
#include "world/together.h"

namespace flux {

namespace {

void require_size(int ranks) {
  if (ranks < 1 || ranks > kMaxRanks)
    throw Error(ErrorKind::kInvalid, "a world has 1 to 16 ranks, not " + std::to_string(ranks));
}

}  // namespace

World::World(std::unique_ptr<Team> team) : team_(std::move(team)) {}
World::~World() = default;

std::unique_ptr<World> World::processes(std::unique_ptr<Bootstrap> bootstrap, WorldOptions const& options) {
  if (!bootstrap)
    throw Error(ErrorKind::kInvalid,
                "a world of processes needs a bootstrap; start the ranks with `flux launch` or mpirun");
  require_size(bootstrap->size());
  together(*bootstrap, options.limit_seconds, [&] {
    if (options.device < kGpuByRank)
      throw Error(ErrorKind::kInvalid, "WorldOptions::device is " + std::to_string(options.device) +
                                           "; it is the index of a GPU, kHostEngine or kGpuByRank");
  });
  std::string const mine = options.device == kHostEngine ? "the host" : "a GPU";
  auto const all = bootstrap->all_gather(mine, options.limit_seconds);
  for (size_t r = 0; r < all.size(); ++r)
    if (all[r] != all[0])
      throw Error(ErrorKind::kInvalid, "rank 0 is on " + all[0] + " and rank " + std::to_string(r) + " on " + all[r] +
                                           "; every rank must choose the same by WorldOptions::device");
  Nodes const nodes = find_nodes(*bootstrap, options);
  std::shared_ptr<Gpu> gpu;
  if (options.device != kHostEngine) gpu = open_process_gpu(*bootstrap, nodes, options.device, options.limit_seconds);
  return std::make_unique<World>(
      std::make_unique<Team>(std::move(bootstrap), nodes, MemoryKind::kSharedMemory, options, std::move(gpu)));
}

std::unique_ptr<World> World::mirror(int rank, int ranks, Partner partner, WorldOptions const& options) {
  // The ranks that are left out say and own what this one does; their GPU memory alone is another.
  auto alone = [ranks](std::string_view mine) { return std::vector<std::string>(ranks, std::string(mine)); };
  return std::make_unique<World>(std::make_unique<Team>(bootstrap_from(rank, ranks, alone), Nodes(ranks),
                                                        MemoryKind::kHeap, options, open_gpu(0, 1, partner)));
}

int World::rank() const { return team_->rank(); }
int World::size() const { return team_->size(); }
int World::nodes() const { return team_->nodes().count; }
std::string_view World::kind() const {
  if (team_->kind() == MemoryKind::kSharedMemory) return "processes";
  if (Gpu const* gpu = team_->gpu()) return gpu->mirrored() ? "mirror" : gpu->shared() ? "shared gpu" : "devices";
  return "threads";
}
bool World::on_gpu() const { return team_->gpu() != nullptr; }
std::vector<LinkProof> const& World::links() const { return team_->links(); }
Link World::link() const { return team_->options().link; }
void World::set_link(Link link) { team_->options().link = link; }
void World::barrier() { team_->all_gather({}); }
std::vector<std::string> World::all_gather(std::string_view mine) { return team_->all_gather(mine); }
void World::check() const { team_->check(); }

#if !FLUX_WITH_CUDA
std::shared_ptr<Gpu> open_gpu(int, int, Partner) {
  throw Error(ErrorKind::kUnsupported, "this build of FLUX has no CUDA; build it where nvcc is, with -DFLUX_CUDA=ON");
}
std::shared_ptr<Gpu> open_process_gpu(Bootstrap&, Nodes const&, int, double) { return open_gpu(0, 1); }
UsableGpus usable_gpus() { return {0, "this build of FLUX has no CUDA"}; }
GpuReport report_gpus(double) {
  std::string const why = "this build of FLUX has no CUDA";
  return {why, {}, {}, why, why};
}
#endif

namespace {

/// Ranks as threads; `gpu` opens a rank's GPU, if it has one.
void run_ranks(int ranks, WorldOptions const& options, std::function<void(World&)> const& body,
               std::function<std::shared_ptr<Gpu>(int rank)> const& gpu) {
  require_size(ranks);
  auto point = std::make_shared<MeetingPoint>(ranks);
  std::mutex mutex;
  std::exception_ptr first;
  auto rank_body = [&](int rank) {
    std::unique_ptr<World> world;
    try {
      auto bootstrap = std::make_unique<ThreadBootstrap>(point, rank, ranks);
      auto own = gpu(rank);
      Nodes const nodes = own ? Nodes(ranks) : find_nodes(*bootstrap, options);
      world = std::make_unique<World>(
          std::make_unique<Team>(std::move(bootstrap), nodes, MemoryKind::kHeap, options, std::move(own)));
      body(*world);
    } catch (...) {
      {
        std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      point->cancel();
      if (world) world->team().fail();
    }
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) threads.emplace_back(rank_body, r);
  for (auto& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace

void run_threads(int ranks, WorldOptions const& options, std::function<void(World&)> const& body) {
  run_ranks(ranks, options, body, [](int) { return nullptr; });
}
void run_devices(int ranks, WorldOptions const& options, std::function<void(World&)> const& body) {
  run_ranks(ranks, options, body, [](int rank) { return open_gpu(rank, 1); });
}
void run_shared_gpu(int ranks, WorldOptions const& options, std::function<void(World&)> const& body) {
  constexpr int kMost = 8;
  if (ranks > kMost)
    throw Error(ErrorKind::kInvalid, "ranks that share a GPU are 1 to 8, not " + std::to_string(ranks) +
                                         ": more have not enough hardware queues and would wait for each other");
  run_ranks(ranks, options, body, [ranks](int) { return open_gpu(0, ranks); });
}

}  // namespace flux
