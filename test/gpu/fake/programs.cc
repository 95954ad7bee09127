// What ranks do on the fake GPU: worlds come, memory is shared, worlds go; and a rank that is struck meanwhile.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <Eigen/Core>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "gpu/fake/programs.h"
#include "gpu/fake/runtime.h"
#include "gpu/scenario_list.h"
#include "plan/plan_cache.h"
#include "world/gpu.h"
#include "world/program.h"
#include "world/team.h"

namespace flux::test {
namespace {

/// Those that stay: a world's watcher looks into a file of each peer's process now and then.
size_t open_files() {
  constexpr int kLooks = 5;
  size_t least = SIZE_MAX;
  for (int i = 0; i < kLooks; ++i) {
    if (i > 0) usleep(2000);
    auto const all = std::filesystem::directory_iterator("/proc/self/fd");
    least = std::min(least, static_cast<size_t>(std::distance(all, {})));
  }
  return least;
}

// A world whose ranks write into each other's memory and find there what was written.
void one_world(int device, bool in_host_memory = false) {
  WorldOptions options;
  options.limit_seconds = 4, options.device = device;
  auto const world = World::processes(bootstrap_from_environment(), options);
  int const rank = world->rank(), ranks = world->size();
  if (world->links().size() != static_cast<size_t>(ranks * (ranks - 1))) throw std::runtime_error("links are missing");
  for (LinkProof const& link : world->links())
    if ((link.way == "host memory") != in_host_memory) throw std::runtime_error("the links are by " + link.way);
  auto const memory = world->team().allocate(3 << 20, Use::kWords);
  auto word = [&](int owner, int writer) { return reinterpret_cast<Word*>(memory->at(owner)) + writer; };
  for (int p = 0; p < ranks; ++p) *word(p, rank) = static_cast<Word>(100 + rank);
  world->barrier();
  for (int p = 0; p < ranks; ++p)
    if (*word(rank, p) != static_cast<Word>(100 + p)) throw std::runtime_error("a word is missing");
  world->barrier();
}

void expect_nothing_left(World& world, size_t files) {
  // Blocks of CUDA IPC wait for the others to close theirs, which they do before they come here.
  bool const ipc = left_on_fake_gpu().starts_with("mallocs");
  if (!ipc && (!left_on_fake_gpu().empty() || open_files() != files))
    throw std::runtime_error(
        fmt::format("rank {}: left are {} and {} of {} files", world.rank(), left_on_fake_gpu(), open_files(), files));
}

void worlds_on(World& world, int device, int count = 3, bool in_host_memory = false) {
  size_t const files = open_files();
  try {
    for (int i = 0; i < count; ++i) one_world(device, in_host_memory);
  } catch (Error const&) {
    expect_nothing_left(world, files);
    throw;
  }
  expect_nothing_left(world, files);
}

// Where a proof did not end, nothing is freed: that would wait for it.
void stuck(World&) { one_world(0); }

// Rank 1 is killed after FLUX_TEST_AFTER_US, wherever it is.
void killed(World& world) {
  std::thread blow;
  if (world.rank() == 1)
    blow = std::thread([] {
      std::this_thread::sleep_for(std::chrono::microseconds(std::atoi(std::getenv("FLUX_TEST_AFTER_US"))));
      kill(getpid(), SIGKILL);
    });
  for (;;) worlds_on(world, 0);
}

// All operators by all ways, byte for byte, on GPUs of their own.
void scenarios(World& world) {
  auto const on_gpu = world_on_gpu(10);
  for (Scenario const& s : gpu_scenarios(chip_of_device(0).engine)) {
    if (s.ranks != world.size()) continue;
    std::string const failure = run_scenario(*on_gpu, s);
    if (!failure.empty()) throw std::runtime_error(failure);
  }
}

void scenarios_by_host(World& world) {
  auto const on_gpu = world_on_gpu(10);
  if (!on_gpu->team().gpu()->through_host()) throw std::runtime_error("they do not meet in host memory");
  for (Scenario const& s : scenarios_in_host_memory(chip_of_device(0).engine)) {
    if (s.ranks != world.size()) continue;
    std::string const failure = run_scenario(*on_gpu, s);
    if (!failure.empty()) throw std::runtime_error(failure);
  }
}

using Numbers = std::vector<Eigen::bfloat16>;

/// y = reduce_scatter(all_gather(x) wᵀ) of ones, on memory that the fake GPU shares with the host.
class Layer {
 public:
  static constexpr int64_t kM = 48, kWidth = 64;
  Layer(World& world, float weight, Workspace const* workspace = nullptr, std::string_view line = "")
      : rows_(part_of_rows(kM, world.rank(), world.size()).size),
        want_(kWidth * weight * kWidth * weight * static_cast<float>(world.size())),
        x_(rows_ * kWidth, Eigen::bfloat16(1)),
        w_(kWidth * kWidth, Eigen::bfloat16(weight)),
        hidden_(kM * kWidth),
        y_(rows_ * kWidth),
        gather_(world, {kM, kWidth, DType::kBF16}, parse_plan(line), workspace),
        scatter_(world, {kM, kWidth, DType::kBF16}, parse_plan(line), workspace) {}
  void run(Stream stream = nullptr) {
    Linear linear;
    linear.weight = of(w_), linear.out = of(hidden_);
    gather_.run(kM, of(x_), linear, stream);
    scatter_.run(kM, of(hidden_), of(w_), WeightLayout::kOutIn, of(y_), {}, stream);
  }
  void check() const {
    for (auto y : y_)
      if (static_cast<float>(y) != want_)
        throw std::runtime_error(fmt::format("y is {} and should be {}", static_cast<float>(y), want_));
  }

 private:
  static Tensor of(Numbers& x) {
    return matrix(x.data(), DType::kBF16, static_cast<int64_t>(x.size()) / kWidth, kWidth);
  }
  int64_t rows_;
  float want_;
  Numbers x_, w_, hidden_, y_;
  AllGatherGemm gather_;
  GemmReduceScatter scatter_;
};

template <class Act>
void expect_error(ErrorKind kind, std::string const& part, Act&& act) {
  try {
    act();
  } catch (Error const& error) {
    if (error.kind() == kind && std::string(error.what()).find(part) != std::string::npos) return;
    throw;
  }
  throw std::runtime_error("no error that says '" + part + "'");
}

MemoryNeed need_of_layers(World& world, std::string_view line) {
  MemoryNeed need = AllGatherGemm::memory(world, {Layer::kM, Layer::kWidth, DType::kBF16}, parse_plan(line));
  return need.cover(GemmReduceScatter::memory(world, {Layer::kM, Layer::kWidth, DType::kBF16}, parse_plan(line)));
}

// Layers that use one set of buffers in turn, on one stream and on several.
void shared_buffers(World&) {
  auto const world = world_on_gpu(10);
  for (auto line : {"", "buffers=1", "route=stage transport=pull", "fused=no"}) {
    auto workspace = std::make_unique<Workspace>(*world, need_of_layers(*world, line));
    Layer one(*world, 0.5f, workspace.get(), line), two(*world, 0.25f, workspace.get(), line);
    for (int i = 0; i < 9; ++i) {
      one.run(stream_number(i % 2)), two.run(stream_number(i % 3));
      one.check(), two.check();
    }
    workspace.reset();  // the layers keep what they use
    one.run(), two.run(), one.check(), two.check();
    world->barrier();
  }
  Workspace const workspace(*world, need_of_layers(*world, ""));
  expect_error(ErrorKind::kInvalid, "covers() all", [&] {
    AllGatherGemm(*world, {Layer::kM * 100, Layer::kWidth, DType::kBF16}, {}, &workspace);
  });
  expect_error(ErrorKind::kInvalid, "buffers=1", [&] { Layer(*world, 1, &workspace, "buffers=1"); });
  Workspace const staged(*world, need_of_layers(*world, "route=stage"));
  expect_error(ErrorKind::kInvalid, "route=sum", [&] { Layer(*world, 1, &staged, "route=sum"); });
  Layer one(*world, 0.5f, &workspace), two(*world, 0.5f, &workspace);
  one.run(stream_number(1));
  expect_error(ErrorKind::kInvalid, "lane", [&] { Layer(*world, 1, &workspace, "lane=1"); });
  // While streams are captured nothing tells which call comes first.
  hold_fake_gpu(), one.run(stream_number(1)), capture_on_fake_gpu(true);
  one.run(stream_number(1));
  expect_error(ErrorKind::kInvalid, "captured on one stream", [&] { two.run(stream_number(2)); });
  capture_on_fake_gpu(false), let_fake_gpu_go();
  two.run(stream_number(2)), two.check();
  world->barrier();
}

// The host runs 64 calls ahead and waits then; an operator that goes away waits for its calls.
void runs_ahead(World&) {
  auto const world = world_on_gpu(10);
  auto layer = std::make_unique<Layer>(*world, 0.5f);
  std::atomic<int> calls = 0;
  std::atomic<bool> gone = false;
  hold_fake_gpu();
  std::thread host([&] {
    for (; calls < 100; ++calls) layer->run();
    hold_fake_gpu(), layer->run(), layer.reset(), gone = true;
  });
  auto await = [](auto&& is_so) {
    for (int i = 0; i < 5000 && !is_so(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  await([&] { return calls >= 64; });
  int const ahead = calls;
  let_fake_gpu_go();
  await([&] { return calls == 100; });
  bool const too_early = gone;
  let_fake_gpu_go();
  host.join();
  if (ahead != 64) throw std::runtime_error(fmt::format("the host is {} calls ahead", ahead));
  if (too_early) throw std::runtime_error("an operator went away before its call was over");
}

// A call that does not end: its operator goes away in time, and its memory stays.
void never_over(World&) {
  auto const world = world_on_gpu(0.5);
  auto layer = std::make_unique<Layer>(*world, 0.5f);
  hold_fake_gpu(), layer->run();
  std::string const before = left_on_fake_gpu();
  layer.reset();
  if (left_on_fake_gpu() != before) throw std::runtime_error("memory went: " + before + ", then " + left_on_fake_gpu());
}

// Said before anything is allocated, on all ranks alike.
void too_much_memory(World&) {
  auto const world = world_on_gpu(10);
  std::string const before = left_on_fake_gpu();
  int64_t const rows = int64_t{1} << 26;
  for (auto line : {"", "route=stage"}) {
    MemoryNeed const need = GemmReduceScatter::memory(*world, {rows, 4096, DType::kBF16}, parse_plan(line));
    expect_error(ErrorKind::kDevice, fmt::format("needs {} bytes", need.total()), [&] {
      GemmReduceScatter(*world, {rows, 4096, DType::kBF16}, parse_plan(line));
    });
  }
  expect_error(ErrorKind::kDevice, "a workspace needs", [&] { Workspace(*world, {2, int64_t{1} << 50, 0, 0}); });
  if (left_on_fake_gpu() != before) throw std::runtime_error("left is " + left_on_fake_gpu());
  Layer layer(*world, 0.5f);
  layer.run(), layer.check();
  world->barrier();
}

// Operators that leave the choice are tuned by all ranks, take the same plan, and are right; another world finds it.
void tunes(World& meeting) {
  GemmReduceScatter::Shape const shape{192, 64, DType::kBF16, 384};
  std::string const file = meeting.all_gather(
      fmt::format("{}/flux_tunes_{}.json", std::filesystem::temp_directory_path().string(), getpid()))[0];
  WorldOptions options;
  options.limit_seconds = 10, options.device = kGpuByRank;
  options.plan_cache = meeting.rank() == 0 ? file : "none";  // rank 0's counts
  std::string first;
  for (double const seconds : {0.2, 0.0}) {
    options.tune_seconds = seconds;
    auto const world = World::processes(bootstrap_from_environment(), options);
    GemmReduceScatter const op(*world, shape);
    std::string const mine = to_string(op.plan());
    for (std::string const& plan : world->all_gather(mine))
      if (plan != mine) throw std::runtime_error(mine + " here, elsewhere " + plan);
    if (first.empty()) first = mine;
    if (mine != first) throw std::runtime_error("tuned was " + first + " and found " + mine);
    if (meeting.rank() == 0 && PlanCache::read(file).plans().size() != 1) throw std::runtime_error("it was not kept");
    Layer layer(*world, 0.5f);
    layer.run(), layer.check();
    world->barrier();
  }
  if (meeting.rank() == 0) std::filesystem::remove(file);
}

void through_nccl(World&) {
  auto const world = world_on_gpu(10);
  if (world->team().gpu()->nccl() == nullptr) throw std::runtime_error("the links are used");
  Workspace const workspace(*world, need_of_layers(*world, ""));
  Layer one(*world, 0.5f, &workspace), two(*world, 0.25f);
  for (int i = 0; i < 5; ++i) one.run(), two.run(), one.check(), two.check();
  world->barrier();
}

// What reads or adds at a peer, or relays: said when an operator is made, on all ranks alike.
void refused_in_host_memory(World&) {
  auto const world = world_on_gpu(10);
  AllGatherGemm::Shape const rows{Layer::kM, Layer::kWidth, DType::kBF16};
  GemmReduceScatter::Shape const sums{Layer::kM, Layer::kWidth, DType::kBF16};
  auto refuses = [&](std::string_view line, std::string const& part, auto&& make) {
    expect_error(ErrorKind::kInvalid, part, [&] { make(parse_plan(line)); });
  };
  auto gather = [&](Plan const& plan) { AllGatherGemm(*world, rows, plan); };
  auto scatter = [&](Plan const& plan) { GemmReduceScatter(*world, sums, plan); };
  refuses("transport=remote", "use transport=push", gather);
  refuses("path=ring", "use path=direct", gather);
  refuses("copies=2", "use copies=auto", gather);
  refuses("route=ring", "use path=direct and route=auto", scatter);
  refuses("route=sum", "use route=stage", scatter);
  refuses("route=stage copies=2", "use copies=auto", scatter);
  Layer layer(*world, 0.5f);
  layer.run(), layer.check();
  world->barrier();
}

// Rank 1 stays away from a call until the world has ended for the others.
void absent_from_host_memory(World& meeting) {
  auto const world = world_on_gpu(1);
  Layer layer(*world, 0.5f, nullptr, "buffers=1");
  layer.run(), layer.check();
  world->barrier();
  for (;;) {
    if (meeting.rank() == 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    else
      layer.run();
    world->check();
  }
}

// Each rank asks for another way.
void differing_peers(World& world) {
  setenv("FLUX_PEERS", world.rank() == 0 ? "auto" : "host", 1);
  one_world(0);
}

// Rank 1 stays away from a call until the world has ended for the others.
void absent_from_nccl(World& meeting) {
  auto const world = world_on_gpu(1);
  Layer layer(*world, 0.5f);
  layer.run(), layer.check();
  world->barrier();
  if (meeting.rank() == 1)
    for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(20)), world->check();
  hold_fake_gpu();
  layer.run();
  let_fake_gpu_go();
  world->check();
  throw std::runtime_error("nobody said that rank 1 is missing");
}

}  // namespace

std::vector<Program> const& programs() {
  static std::vector<Program> const all = [] {
    std::vector<Program> list = bench_programs();
    for (Program const& p : node_programs()) list.push_back(p);
    list.insert(list.end(),
                {
                    {"worlds", 3, 10, [](World& world) { worlds_on(world, 0); }},
                    {"worlds16", 16, 20, [](World& world) { worlds_on(world, 0); }},
                    {"worlds_by_rank", 3, 10, [](World& world) { worlds_on(world, kGpuByRank); }},
                    {"world_in_host_memory", 3, 10, [](World& world) { worlds_on(world, kGpuByRank, 1, true); }},
                    {"worlds_in_host_memory", 3, 10, [](World& world) { worlds_on(world, kGpuByRank, 3, true); }},
                    {"differing_peers", 3, 10, differing_peers},
                    {"scenarios2", 2, 20, scenarios},
                    {"scenarios3", 3, 20, scenarios},
                    {"scenarios2_in_host_memory", 2, 20, scenarios_by_host},
                    {"scenarios3_in_host_memory", 3, 20, scenarios_by_host},
                    {"refused_in_host_memory", 3, 10, refused_in_host_memory},
                    {"absent_from_host_memory", 3, 10, absent_from_host_memory},
                    {"shared_buffers", 3, 10, shared_buffers},
                    {"through_nccl", 3, 10, through_nccl},
                    {"tunes", 3, 20, tunes},
                    {"absent_from_nccl", 3, 10, absent_from_nccl},
                    {"runs_ahead", 1, 20, runs_ahead},
                    {"never_over", 1, 20, never_over},
                    {"too_much_memory", 3, 10, too_much_memory},
                    {"stuck", 3, 10, stuck},
                    {"killed", 3, 10, killed},
                });
    return list;
  }();
  return all;
}

}  // namespace flux::test
