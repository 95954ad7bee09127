#include "bench/gemm/gpu_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "bench/gemm/copy_rows.h"
#include "bench/gemm/ours.h"
#include "bench/gemm/round_trip.h"
#include "bench/gemm/timing.h"
#include "op/tune_operator.h"
#include "plan/choose_tile.h"
#include "plan/measured_machine.h"
#include "world/cuda/copy_stream.h"
#include "world/team.h"

namespace flux::bench {
namespace {

constexpr int kRounds = 9;
constexpr int64_t kBlock = 64 << 20, kWordBytes = 256;

class GpuProbe final : public MachineProbe {
 public:
  explicit GpuProbe(World& world)
      : world_(world),
        gpu_(*world.team().gpu()),
        rank_(world.rank()),
        peer_(rank_ ^ 1),
        stream_(gpu_.stream()),
        data_(world.team().allocate(2 * kBlock, Use::kData)),
        words_(world.team().allocate(kWordBytes, Use::kWords)),
        here_(2 * kBlock) {
    if (peer_ >= world.size()) peer_ = -1;  // a rank too many has nothing to measure
    must(cudaMemset(here_.data(), 1, static_cast<size_t>(here_.bytes())));
    must(cudaDeviceSynchronize());
  }

  double gemm_us(int64_t m, int64_t n, int64_t k, bool busy) override {
    GemmProblem const p{"", "", "gemm_rs", m, n, k, 1};
    GemmBuffers const buffers(p);
    Choice const choice = choose_tile({m}, n, k, p.layout, false, gpu_.chip());
    GemmLaunch const launch = plain_launch(p, buffers, choice.tile, choice.band);
    auto const run = [&] { enqueue_gemm(launch, stream_.get()); };
    if (busy) {
      using Clock = std::chrono::steady_clock;
      for (auto const end = Clock::now() + std::chrono::seconds(2); Clock::now() < end; gpu_.settle(stream_.get()))
        for (int i = 0; i < 50; ++i) run();
    }
    return median_us(run, busy ? 20 : 1);
  }

  double copy_here_us(int64_t bytes) override {
    return median_us([&] {
      must(cudaMemcpyAsync(mine(1), mine(0), static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream_.get()));
    });
  }

  double copies_us(int count, int64_t bytes, bool pull, bool words) override {
    Word* const behind = words_->view<Word>(0).at(peer_ < 0 ? rank_ : peer_);
    return median_us([&] {
      if (peer_ < 0) return;
      for (bool const ours : {true, false}) {
        if (!ours && !gpu_.mirrored()) continue;  // a real peer sends by itself
        bool const in = ours ? pull : !pull;
        CopyStream& way = ours ? ours_ : theirs_;
        way.fork(stream_.get());
        for (int i = 0; i < count; ++i) {
          Transfer const t = transfer(in, bytes, words && ours ? behind : nullptr);
          way.enqueue({&t, 1});
        }
      }
      ours_.join(stream_.get());
      if (gpu_.mirrored()) theirs_.join(stream_.get());
    });
  }

  double kernel_us(int64_t bytes, bool load) override {
    CopiesBothWays copies;
    if (peer_ >= 0 && (load || gpu_.mirrored())) copies.in[0] = {mine(1), theirs(1), bytes};
    if (peer_ >= 0 && (!load || gpu_.mirrored())) copies.out[0] = {theirs(0), mine(0), bytes};
    return median_us([&] { copy_rows(copies, stream_.get()); });
  }

  double round_trip_us() override {
    constexpr int kTrips = 200;
    Word first = 1;  // the same on both sides, which enqueue as often
    double const us = median_us([&] {
      if (peer_ < 0) return;
      auto const words = words_->view<Word>(64);
      // In a mirror: a word in the peer's memory, read back.
      auto* const far = gpu_.mirrored() ? reinterpret_cast<Word*>(theirs(0)) : words.at(peer_);
      round_trips(far, gpu_.mirrored() ? far : words.at(rank_), first, kTrips, gpu_.mirrored() || rank_ < peer_,
                  stream_.get());
      first += kTrips;
    });
    return us / kTrips;
  }

  double collective_us(int64_t) override { return 0; }

 private:
  std::byte* mine(int half) const { return static_cast<std::byte*>(here_.data()) + half * kBlock; }
  std::byte* theirs(int half) const { return data_->at(peer_) + half * kBlock; }

  Transfer transfer(bool in, int64_t bytes, Word* word) const {
    Transfer t;
    t.from = in ? theirs(1) : mine(0), t.to = in ? mine(1) : theirs(0);
    t.rows = 1, t.row_bytes = t.from_stride = t.to_stride = bytes;
    t.set = word, t.goal = 1;
    return t;
  }

  /// The slowest rank's.
  double median_us(std::function<void()> const& run, int repeat = 1) {
    std::vector<GpuMethod> methods = {{"it", run, {}}};
    world_.barrier();
    measure(methods, kRounds, repeat, random_, stream_.get());
    return slowest_us(world_, methods[0].quantile(0.5));
  }

  World& world_;
  Gpu& gpu_;
  int rank_, peer_;
  std::shared_ptr<CUstream_st> stream_;
  std::shared_ptr<SymmetricMemory> data_, words_;
  Buffer here_;
  CopyStream ours_, theirs_;
  std::mt19937 random_{1};
};

}  // namespace

Machine measure_gpu(World& world) {
  Gpu const& gpu = *world.team().gpu();
  gpu.activate();
  PlanTable const& table = plan_table(world.team());
  Machine kind;
  for (Machine const& like : named_machines())
    if (like.engine == EngineKind::kSm90 && (like.link.kind == LinkKind::kPcie) == gpu.across_pcie()) {
      kind = like;
      break;
    }
  cudaDeviceProp about;
  int device = 0;
  must(cudaGetDevice(&device));
  must(cudaGetDeviceProperties(&about, device));
  kind.name = fmt::format("{} here", about.name), kind.processors = gpu.processors();
  kind.mirror = gpu.mirrored();
  kind.source = fmt::format("measured on {}, its link {}", about.name,
                            gpu.mirrored() ? "to pinned host memory" : "between two of them");
  if (key(kind) != table.key())
    throw Error(ErrorKind::kInternal, fmt::format("measured {} where rank 0 has {}", key(kind), table.key()));
  GpuProbe probe(world);
  Machine const mine = measured_machine(probe, kind);
  return parse_machine(world.all_gather(to_json(mine))[0], "rank 0's machine");  // one for all
}

}  // namespace flux::bench
