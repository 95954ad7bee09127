#include "op/tune_operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <random>

#include "plan/tuner.h"
#include "world/team.h"

namespace flux {
namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// Operands of one rank, where the world's operators take them.
class Operands {
 public:
  Operands(World& world, Problem const& p) : gpu_(world.team().gpu()), p_(p) {
    int const rank = world.rank(), ranks = world.size();
    bool const gathers = p.gathers(), out_in = p.layout == WeightLayout::kOutIn;
    int64_t const rows = part_of_rows(p.m, rank, ranks).size, width = p.gated ? p.n / 2 : p.n;
    int64_t const n = gathers ? part_of_columns(width, rank, ranks).size : p.n,
                  k = gathers ? p.k : part_of_columns(p.k, rank, ranks).size, wide = n * (p.gated ? 2 : 1);
    x = tensor(gathers ? rows : p.m, k);
    weight = out_in ? tensor(wide, k) : tensor(k, wide);
    out = tensor(p.op == Op::kGemmReduceScatter ? rows : p.m, n);
  }
  Tensor x, weight, out;

 private:
  Tensor tensor(int64_t rows, int64_t columns) {
    int64_t const bytes = std::max<int64_t>(rows * columns * size_of(p_.dtype), 1);
    memory_.push_back(gpu_ ? gpu_->allocate(bytes)
                           : std::shared_ptr<std::byte>(new std::byte[static_cast<size_t>(bytes)],
                                                        std::default_delete<std::byte[]>()));
    // Numbers of ordinary size: a GPU that multiplies zeros draws less power, and runs faster than it will.
    constexpr int64_t kPattern = 1 << 20;
    std::vector<std::byte> pattern(static_cast<size_t>(std::min(bytes, kPattern)));
    std::mt19937 random(1);
    for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = std::byte(random() & 0x3b);  // no exponent is large
    for (int64_t at = 0; at < bytes; at += kPattern) {
      int64_t const count = std::min(kPattern, bytes - at);
      if (gpu_)
        gpu_->copy(memory_.back().get() + at, pattern.data(), count);
      else
        std::copy_n(pattern.data(), count, memory_.back().get() + at);
    }
    return matrix(memory_.back().get(), p_.dtype, rows, columns);
  }
  Gpu* gpu_;
  Problem const& p_;
  std::vector<std::shared_ptr<std::byte>> memory_;
};

/// An operator with one plan.
class Trial {
 public:
  Trial(World& world, Problem const& p, Plan const& plan) : p_(p) {
    GemmReduceScatter::Shape const sums{p.m, p.n, p.dtype, p.k};
    if (p.gathers())
      gather_ = std::make_unique<AllGatherGemm>(world, AllGatherGemm::Shape{p.m, p.k, p.dtype}, plan);
    else if (p.op == Op::kGemmReduceScatter)
      scatter_ = std::make_unique<GemmReduceScatter>(world, sums, plan);
    else
      reduce_ = std::make_unique<GemmAllReduce>(world, sums, plan);
  }
  void run(Operands const& on, Stream stream) {
    if (scatter_) return scatter_->run(p_.m, on.x, on.weight, p_.layout, on.out, {}, stream);
    if (reduce_) return reduce_->run(p_.m, on.x, on.weight, p_.layout, on.out, {}, stream);
    Linear linear;
    linear.weight = on.weight, linear.layout = p_.layout, linear.out = on.out, linear.gated = p_.gated;
    gather_->run(p_.m, on.x, linear, stream);
  }

 private:
  Problem const& p_;
  std::unique_ptr<AllGatherGemm> gather_;
  std::unique_ptr<GemmReduceScatter> scatter_;
  std::unique_ptr<GemmAllReduce> reduce_;
};

class Timing final : public PlanTiming {
 public:
  Timing(World& world, Problem const& p) : world_(world), p_(p), operands_(world, p) {
    if (world.on_gpu()) stream_ = world.team().gpu()->stream();
  }

  std::optional<double> time_us(Plan const& plan) override {
    auto& trial = trials_[to_string(plan)];
    if (!trial) try {
        trial = std::make_unique<Trial>(world_, p_, plan);
      } catch (Error const& error) {  // the same on every rank
        if (error.kind() == ErrorKind::kTimeout || error.kind() == ErrorKind::kInternal) throw;
        return {};
      }
    int const calls = world_.on_gpu() ? 10 : 1;  // in a row: a GPU runs one while the host enqueues the next
    world_.barrier();
    auto const begin = Clock::now();
    for (int i = 0; i < calls; ++i) trial->run(operands_, stream_.get());
    if (world_.on_gpu()) world_.team().gpu()->settle(stream_.get());
    double slowest = 0;
    for (std::string const& us : world_.all_gather(fmt::format("{}", us_since(begin) / calls)))
      slowest = std::max(slowest, std::stod(us));
    return slowest;
  }

 private:
  World& world_;
  Problem const& p_;
  Operands operands_;
  std::shared_ptr<CUstream_st> stream_;
  std::map<std::string, std::unique_ptr<Trial>> trials_;
};

}  // namespace

void tune_operator(World& world, Problem const& problem, PlanTable& table) {
  auto const begin = Clock::now();
  struct Tuning {  // whatever happens, operators look plans up again afterwards
    PlanTable& table;
    explicit Tuning(PlanTable& t) : table(t) { table.tuning = true; }
    ~Tuning() { table.tuning = false; }
  } const tuning(table);
  try {
    Machine const machine = table.machine();
    Timing timing(world, problem);
    TuneOptions options;
    options.go_on = [&] {  // rank 0's clock decides for all
      return world.all_gather(us_since(begin) < 1e6 * table.tune_seconds ? "on" : "end")[0] == "on";
    };
    Tuned const tuned = tune(rank_candidates(problem, machine), timing, options);
    TunedPlan const best{table.key(), problem, tuned.best().candidate.plan, tuned.best().median_us()};
    table.put(best);
    if (world.rank() != 0) return;
    std::string const path = plan_file(world.team().options());
    std::string const note = path.empty() ? "" : PlanCache::add(path, {best});
    if (!note.empty()) fmt::print(stderr, "flux: note: {}\n", note);
  } catch (Error const& error) {
    if (error.kind() != ErrorKind::kUnsupported) throw;
    if (world.rank() == 0) fmt::print(stderr, "flux: note: not tuned: {}\n", error.what());
  }
}

}  // namespace flux
