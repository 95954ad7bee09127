// What ranks that are processes do on GPUs: good programs, and mishaps. All of them on GPU 0, which serves its
// processes in turn, so calls are small and limits generous.
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "gpu/device.h"
#include "kernel/check.h"
#include "op/scenario.h"
#include "world/cuda/process_gpu.h"
#include "world/program.h"
#include "world/team.h"

namespace flux::test {
namespace {

using std::chrono::milliseconds;

/// Tensors of one rank on its GPU, and a stream.
class OnGpu final : public Memory {
 public:
  OnGpu() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }
  ~OnGpu() override {
    cudaStreamSynchronize(stream_);
    for (void* block : blocks_) cudaFree(block);
    cudaStreamDestroy(stream_);
  }
  Tensor place(Tensor const& host) override {
    Tensor there = host;
    int64_t const bytes = host.rows * host.stride * size_of(host.dtype);
    check_cuda(cudaMalloc(&there.data, std::max<int64_t>(bytes, 16)), "memory");
    blocks_.push_back(there.data);
    // On our stream: a copy from pageable memory may return before the last of it has arrived, and a stream that does
    // not wait for the default one would read what was there before.
    check_cuda(cudaMemcpyAsync(there.data, host.data, bytes, cudaMemcpyHostToDevice, stream_), "copying there");
    return there;
  }
  void fetch(Tensor const& placed, Tensor const& host) override {
    if (!placed) return;
    settle();
    int64_t const bytes = host.rows * host.stride * size_of(host.dtype);
    check_cuda(cudaMemcpy(host.data, placed.data, bytes, cudaMemcpyDeviceToHost), "copying back");
  }
  Stream stream() override { return stream_; }
  void settle() { check_cuda(cudaStreamSynchronize(stream_), "the stream"); }

 private:
  cudaStream_t stream_ = nullptr;
  std::vector<void*> blocks_;
};

/// An MLP of two operators whose results are whole numbers: AG+GEMM of a gathered column, then GEMM+RS.
class SmallMlp {
 public:
  static constexpr int64_t kM = 130, kWidth = 64, kHidden = 48;

  explicit SmallMlp(World& world, Plan const& plan = {})
      : world_(world),
        gather_(world, {kM, kWidth, DType::kBF16}, plan),
        scatter_(world, {kM, kWidth, DType::kBF16}, plan),
        rows_(part_of_rows(kM, world.rank(), world.size())) {
    x_ = filled(rows_.size, kWidth, [&](int64_t i, int64_t j) { return j == 0 ? number(rows_.begin + i) : 0; });
    up_ = filled(kHidden, kWidth, [](int64_t i, int64_t) { return static_cast<float>(i % 2 + 1); });
    hidden_ = filled(kM, kHidden, [](int64_t, int64_t) { return 0; });
    down_ = filled(kWidth, kHidden, [](int64_t, int64_t j) { return j < 2 ? 1.f : 0.f; });
    out_ = filled(rows_.size, kWidth, [](int64_t, int64_t) { return 0; });
  }
  void enqueue(int64_t m = kM) {
    Linear layer;
    layer.weight = up_, layer.out = hidden_;
    Part const rows = part_of_rows(m, world_.rank(), world_.size());
    auto first = [](Tensor t, int64_t count) {
      t.rows = count;
      return t;
    };
    layer.out = first(hidden_, m);
    gather_.run(m, first(x_, rows.size), layer, memory_.stream());
    scatter_.run(m, first(hidden_, m), down_, WeightLayout::kOutIn, first(out_, rows.size), {}, memory_.stream());
  }
  void poison() { check_cuda(cudaMemsetAsync(out_.data, 0xff, out_.bytes(), memory_.stream()), "poison"); }
  /// After calls with all rows. Throws where a number is wrong.
  void check() {
    std::vector<uint16_t> raw(rows_.size * kWidth);
    memory_.fetch(out_, matrix(raw.data(), DType::kBF16, rows_.size, kWidth));
    world_.check();
    for (int64_t i = 0; i < rows_.size; ++i)
      for (int64_t j = 0; j < kWidth; ++j) {
        float const want = 3 * number(rows_.begin + i) * static_cast<float>(world_.size());
        float const got = widen(raw[i * kWidth + j], DType::kBF16);
        if (got != want)
          throw std::runtime_error(
              fmt::format("rank {}: y[{}, {}] is {} and should be {}", world_.rank(), i, j, got, want));
      }
  }
  Stream stream() { return memory_.stream(); }

 private:
  static float number(int64_t row) { return static_cast<float>(row % 7 - 3); }
  template <class Number>
  Tensor filled(int64_t rows, int64_t columns, Number&& number_at) {
    std::vector<uint16_t> raw(rows * columns);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        raw[i * columns + j] = narrow(static_cast<float>(number_at(i, j)), DType::kBF16);
    return memory_.place(matrix(raw.data(), DType::kBF16, rows, columns));
  }

  World& world_;
  OnGpu memory_;
  AllGatherGemm gather_;
  GemmReduceScatter scatter_;
  Part rows_;
  Tensor x_, up_, hidden_, down_, out_;
};

/// One operator by one plan, byte for byte.
void run(World& world, Op op, std::array<int64_t, 3> sizes, std::string_view line) {
  Scenario s;
  s.m = sizes[0], s.n = sizes[1], s.k = sizes[2];
  s.op = op, s.ranks = world.size(), s.nodes = world.nodes(), s.dtype = DType::kBF16, s.calls = 3;
  s.plan = parse_plan(line), s.bias = s.m == 67;
  OnGpu memory;
  std::string const failure = run_scenario(world, s, memory);
  if (!failure.empty()) throw std::runtime_error(failure);
}

// All operators by all ways that the engine has.
void scenarios(World& world) {
  bool const adds = chip_of_device(0).engine == EngineKind::kSm90;
  auto const other_way = adds ? "transport=pull route=sum" : "transport=pull route=push";
  for (auto const& sizes : {std::array<int64_t, 3>{67, 48, 64}, {1, 32, 64}, {330, 160, 96}})
    for (Op op : {Op::kAllGatherGemm, Op::kGemmReduceScatter, Op::kGemmAllReduce})
      for (auto line : {"", other_way, "transport=remote route=stage shots=one", "fused=no buffers=1"})
        run(world, op, sizes, line);
}

// Calls captured once and replayed, with calls in between that are not.
void graph(World& world) {
  SmallMlp mlp(world);
  mlp.enqueue(), mlp.check();
  cudaGraph_t captured;
  cudaGraphExec_t replay;
  check_cuda(cudaStreamBeginCapture(mlp.stream(), cudaStreamCaptureModeThreadLocal), "capturing");
  mlp.enqueue();
  check_cuda(cudaStreamEndCapture(mlp.stream(), &captured), "capturing");
  check_cuda(cudaGraphInstantiate(&replay, captured, 0), "a graph");
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < round % 3; ++i) mlp.enqueue();
    mlp.poison();
    for (int i = 0; i < 3; ++i) check_cuda(cudaGraphLaunch(replay, mlp.stream()), "replaying");
    if (round % 8 == 7) mlp.check();
  }
  check_cuda(cudaGraphExecDestroy(replay), "a graph"), check_cuda(cudaGraphDestroy(captured), "a graph");
}

// Calls without end, in the middle of which `signal` hits rank 1.
void struck(World& world, int signal) {
  SmallMlp mlp(world);
  mlp.enqueue(), mlp.check();
  std::thread blow;
  if (world.rank() == 1)
    blow = std::thread([=] {
      std::this_thread::sleep_for(milliseconds(300));
      kill(getpid(), signal);
    });
  for (;;) mlp.enqueue(), mlp.check();
}

// A world that ends by different calls, and another after it in the same processes.
void second_world(World& world) {
  try {
    SmallMlp mlp(world);
    mlp.enqueue(world.rank() == 1 ? 100 : 130), mlp.check();
    throw std::runtime_error("different calls went unnoticed");
  } catch (Error const& error) {
    if (error.kind() != ErrorKind::kTimeout) throw;
  }
  WorldOptions options;
  options.limit_seconds = 60, options.device = 0;
  auto const again = World::processes(bootstrap_from_environment(), options);
  SmallMlp mlp(*again);
  for (int i = 0; i < 10; ++i) mlp.enqueue(), mlp.check();
}

void links(World& world) {
  int const ranks = world.size();
  if (world.links().size() != static_cast<size_t>(ranks * (ranks - 1))) throw std::runtime_error("links are missing");
  for (LinkProof const& link : world.links())
    if (!link.works || link.way != "same GPU" || link.from == link.to)
      throw std::runtime_error(fmt::format("{} -> {}: {} {}", link.from, link.to, link.way, link.reason));
}

size_t open_files() {
  auto const all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<size_t>(std::distance(all, {}));
}

// Worlds and operators that come and go leave no file open and no GPU memory behind.
void come_and_go(World& world) {
  WorldOptions options;
  options.limit_seconds = 60, options.device = 0;
  auto once = [&] {
    auto const other = World::processes(bootstrap_from_environment(), options);
    SmallMlp mlp(*other);
    mlp.enqueue(), mlp.check();
  };
  once(), once();
  world.barrier();
  size_t const files = open_files();
  size_t free = 0, after = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "memory");
  world.barrier();
  for (int i = 0; i < 6; ++i) once();
  world.barrier();
  check_cuda(cudaMemGetInfo(&after, &total), "memory");
  if (open_files() > files) throw std::runtime_error(fmt::format("{} files were open, {} are", files, open_files()));
  if (after + (size_t{16} << 20) < free)
    throw std::runtime_error(fmt::format("{} bytes of the GPU's memory are gone", free - after));
}

// The second way to share memory, where the first is not there.
void by_ipc(World& world) {
  auto bootstrap = bootstrap_from_environment();
  WorldOptions options;
  options.limit_seconds = 60, options.device = 0;
  auto gpu = open_process_gpu(*bootstrap, Nodes(world.size()), 0, options.limit_seconds, Sharing::kIpc);
  World other(std::make_unique<Team>(std::move(bootstrap), Nodes(world.size()), MemoryKind::kSharedMemory, options,
                                     std::move(gpu)));
  for (int i = 0; i < 2; ++i) {
    SmallMlp mlp(other);
    for (int j = 0; j < 5; ++j) mlp.enqueue(), mlp.check();
  }
  world.barrier();
}

/// In a world of its own whose ranks meet in host memory, as the environment asks.
void in_host_memory(World& meeting, std::function<void(World&)> const& body) {
  setenv("FLUX_PEERS", "host", 1);
  WorldOptions options;
  options.limit_seconds = 60, options.device = 0;
  auto const world = World::processes(bootstrap_from_environment(), options);
  for (LinkProof const& link : world->links())
    if (link.way != "host memory") throw std::runtime_error("the links are by " + link.way);
  body(*world);
  meeting.barrier();
}

void scenarios_by_host(World& meeting) {
  in_host_memory(meeting, [](World& world) {
    for (auto const& sizes : {std::array<int64_t, 3>{67, 48, 64}, {1, 32, 64}, {330, 160, 96}, {1500, 128, 96}})
      for (Op op : {Op::kAllGatherGemm, Op::kGemmReduceScatter, Op::kGemmAllReduce})
        for (auto line : {"", "route=push shots=one", "comm_rows=128 route=stage", "fused=no buffers=1"})
          run(world, op, sizes, line);
  });
}

/// Nodes that one GPU plays, with NCCL between them: it must take them for hosts apart, and goes through sockets.
void play_nodes(World const& world) {
  int const of_node = world.size() / world.nodes();
  setenv("NCCL_HOSTID", fmt::format("flux-node-{}", world.rank() / of_node).c_str(), 1);
  for (auto [name, value] : {std::array{"NCCL_SOCKET_IFNAME", "lo"},
                             {"NCCL_P2P_DISABLE", "1"},
                             {"NCCL_SHM_DISABLE", "1"},
                             {"NCCL_IB_DISABLE", "1"}})
    setenv(name, value, 0);
}

// Copies by blocks are enqueued before the GEMM that waits for them and for NCCL's kernels, copies by the engine
// behind.
void scenarios_over_nodes(World& world) {
  play_nodes(world);
  for (auto const& sizes : {std::array<int64_t, 3>{67, 48, 64}, {1030, 528, 96}})
    for (Op op : {Op::kAllGatherGemm, Op::kGemmReduceScatter, Op::kGemmAllReduce})
      for (auto line : {"", "comm_rows=128 route=stage copies=engine", "copies=2 route=push", "fused=no buffers=1"})
        run(world, op, sizes, line);
}

/// What one rank cannot do, every rank hears of, as the same error.
void expect_error(World& world, ErrorKind kind, std::string const& part, std::function<void()> const& act) {
  std::string said = "nothing";
  try {
    act();
  } catch (Error const& error) {
    if (error.kind() != kind) throw;
    said = error.what();
  }
  for (auto const& one : world.all_gather(said))
    if (one != said || said.find(part) == std::string::npos)
      throw std::runtime_error(fmt::format("one rank says '{}', another '{}'", said, one));
}

void no_such_gpu(World& world) {
  WorldOptions options;
  options.limit_seconds = 60, options.device = world.rank() == 1 ? 99 : 0;
  expect_error(world, ErrorKind::kUnsupported, "rank 1: GPU 99",
               [&] { World::processes(bootstrap_from_environment(), options); });
  options.device = world.rank() == 1 ? kHostEngine : 0;
  expect_error(world, ErrorKind::kInvalid, "the host",
               [&] { World::processes(bootstrap_from_environment(), options); });
}

void too_much_memory(World& world) {
  for (int i = 0; i < 2; ++i)
    expect_error(world, ErrorKind::kDevice, "bytes", [&] {
      GemmReduceScatter op(world, {int64_t{1} << 27, 4096, DType::kBF16});
    });
  SmallMlp mlp(world);
  mlp.enqueue(), mlp.check();
}

}  // namespace

std::vector<Program> const& programs() {
  auto killed = [](World& world) { struck(world, SIGKILL); };
  auto stopped = [](World& world) { struck(world, SIGSTOP); };
  static std::vector<Program> const all = {
      {"scenarios2", 2, 60, scenarios, 0, 30},
      {"scenarios3", 3, 60, scenarios, 0, 30},
      {"graph2", 2, 60, graph, 0, 30},
      {"graph3", 3, 60, graph, 0, 30},
      {"killed", 3, 20, killed, 0, 15},
      {"stopped", 3, 10, stopped, 0, 20},
      {"second_world", 2, 30, second_world, 0, 30},
      {"links", 3, 60, links, 0, 30},
      {"come_and_go", 2, 60, come_and_go, 0, 30},
      {"by_ipc", 2, 60, by_ipc, 0, 30},
      {"scenarios2_by_host", 2, 60, scenarios_by_host, kHostEngine, 30},
      {"scenarios3_by_host", 3, 60, scenarios_by_host, kHostEngine, 30},
      {"graph2_by_host", 2, 60, [](World& meeting) { in_host_memory(meeting, graph); }, kHostEngine, 30},
      {"killed_by_host", 3, 20, [](World& meeting) { in_host_memory(meeting, [](World& w) { struck(w, SIGKILL); }); },
       kHostEngine, 15},
      {"nodes2", 2, 60, scenarios_over_nodes, 0, 30, 2},
      {"nodes4", 4, 60, scenarios_over_nodes, 0, 30, 2},
      {"graph_over_nodes", 2, 60, [](World& world) { play_nodes(world), graph(world); }, 0, 30, 2},
      {"killed_over_nodes", 4, 20, [](World& world) { play_nodes(world), struck(world, SIGKILL); }, 0, 15, 2},
      {"stopped_over_nodes", 4, 10, [](World& world) { play_nodes(world), struck(world, SIGSTOP); }, 0, 20, 2},
      {"no_such_gpu", 2, 60, no_such_gpu, 0, 30},
      {"too_much_memory", 2, 60, too_much_memory, 0, 30},
      {"by_rank", 2, 60, graph, kGpuByRank, 30},
  };
  return all;
}

}  // namespace flux::test
