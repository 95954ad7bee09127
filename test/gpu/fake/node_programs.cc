// Programs over several nodes on the fake GPU, with NCCL between them played by files.
#include <fmt/format.h>

#include <signal.h>
#include <unistd.h>

#include <Eigen/Core>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "gpu/fake/programs.h"
#include "gpu/scenario_list.h"
#include "world/team.h"

namespace flux::test {
namespace {

/// `along_rails`: or one communicator of all ranks, whose sums are in the order of ranks.
void scenarios(World& meeting, int nodes, bool along_rails = true, size_t every = 1) {
  auto const world = world_on_gpu(10, nodes);
  if (world->team().gpu()->spans_nodes() != along_rails) throw std::runtime_error("there are rails, or none");
  std::vector<Scenario> const all = scenarios_over_nodes(nodes, chip_of_device(0).engine);
  for (size_t i = 0; i < all.size(); i += every) {
    Scenario const& s = all[i];
    if (s.ranks != world->size() || (s.ordered && !along_rails)) continue;
    std::string const failure = run_scenario(*world, s);
    if (!failure.empty()) throw std::runtime_error(failure);
  }
  meeting.barrier();
}

// Links within nodes, and rails between them.
void world_of_nodes(World& meeting) {
  auto const world = world_on_gpu(4, 2);
  size_t within = 0;
  for (LinkProof const& link : world->links()) within += link.from / 2 == link.to / 2;
  if (world->nodes() != 2 || within != 4 || world->links().size() != within)
    throw std::runtime_error(fmt::format("{} nodes have {} links", world->nodes(), world->links().size()));
  auto const memory = world->team().allocate(64, Use::kWords);
  for (int r = 0; r < world->size(); ++r)
    if ((memory->at(r) != nullptr) != world->team().nodes().share_memory(r, world->rank()))
      throw std::runtime_error(fmt::format("rank {} and rank {} share memory or not", r, world->rank()));
  meeting.barrier();
}

/// y = all_reduce(all_gather(x) wᵀ wᵀ) of ones: all that goes between nodes.
class Layer {
 public:
  explicit Layer(World& world)
      : ranks_(world.size()),
        x_(part_of_rows(kM, world.rank(), world.size()).size * kWidth, Eigen::bfloat16(1)),
        w_(kWidth * kWidth, Eigen::bfloat16(0.5f)),
        hidden_(kM * kWidth),
        y_(kM * kWidth),
        gather_(world, {kM, kWidth, DType::kBF16}),
        reduce_(world, {kM, kWidth, DType::kBF16}) {}
  void run() {
    Linear linear;
    linear.weight = of(w_), linear.out = of(hidden_);
    gather_.run(kM, of(x_), linear);
    reduce_.run(kM, of(hidden_), of(w_), WeightLayout::kOutIn, of(y_));
  }
  void check() const {
    float const want = kWidth * 0.5f * kWidth * 0.5f * static_cast<float>(ranks_);
    for (auto y : y_)
      if (static_cast<float>(y) != want) throw std::runtime_error(fmt::format("y is {}", static_cast<float>(y)));
  }

 private:
  static constexpr int64_t kM = 48, kWidth = 64;
  using Numbers = std::vector<Eigen::bfloat16>;
  static Tensor of(Numbers& x) {
    return matrix(x.data(), DType::kBF16, static_cast<int64_t>(x.size()) / kWidth, kWidth);
  }
  int ranks_;
  Numbers x_, w_, hidden_, y_;
  AllGatherGemm gather_;
  GemmAllReduce reduce_;
};

/// Calls until the world ends; rank 1 does what it is struck by after the first.
template <class Strike>
void struck(double limit_seconds, Strike&& strike) {
  auto const world = world_on_gpu(limit_seconds, 2);
  Layer layer(*world);
  layer.run(), layer.check();
  world->barrier();
  for (;;) {
    if (world->rank() == 1)
      strike();
    else
      layer.run();
    world->check();
  }
}

void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

void absent(World&) { struck(1, nap); }
void killed(World&) {
  struck(20, [] { kill(getpid(), SIGKILL); });
}
/// Somewhere in a world's making, or in its calls.
void killed_at(World& meeting) {
  std::thread blow;
  if (meeting.rank() == 1)
    blow = std::thread([] {
      std::this_thread::sleep_for(std::chrono::microseconds(std::atoi(std::getenv("FLUX_TEST_AFTER_US"))));
      kill(getpid(), SIGKILL);
    });
  for (;;) {
    auto const world = world_on_gpu(4, 2);
    Layer layer(*world);
    for (int i = 0; i < 3; ++i) layer.run(), world->check(), layer.check();
    world->barrier();
  }
}
/// NCCL of rank 1 says that something is wrong, and nobody knows better.
void network_fails(World&) {
  struck(20, [] { setenv("FLUX_TEST_NCCL_FAILS", "1", 1), nap(); });
}

}  // namespace

std::vector<Program> node_programs() {
  return {
      {"world_of_nodes", 4, 10, world_of_nodes},
      {"nodes2", 2, 20, [](World& world) { scenarios(world, 2); }},
      {"nodes4", 4, 20, [](World& world) { scenarios(world, 2); }},
      {"nodes6", 6, 20, [](World& world) { scenarios(world, 3); }},
      {"nodes4_through_nccl", 4, 20, [](World& world) { scenarios(world, 2, false, 3); }},
      {"some_on_nodes4", 4, 20, [](World& world) { scenarios(world, 2, true, 3); }},
      {"absent_node", 4, 10, absent},
      {"killed_node", 4, 10, killed},
      {"killed_node_at", 4, 10, killed_at},
      {"network_fails", 4, 10, network_fails},
  };
}

}  // namespace flux::test
