#include "bench/gemm/overlap_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "bench/gemm/cublaslt.h"
#include "bench/gemm/cuda.h"
#include "bench/gemm/graph_timing.h"
#include "bench/gemm/reference.h"
#include "bench/gemm/result.h"
#include "bench/workloads.h"
#include "flux/op.h"
#include "op/gpu/partial_sums.h"
#include "trace/trace.h"
#include "world/cuda/copy_stream.h"

namespace flux::bench {
namespace {

/// The collective of GEMM+RS alone: partial sums lie here, a row's meet at its owner.
class ScatterAlone {
 public:
  ScatterAlone(World& world, int64_t m, int64_t n, DType dtype, int copies)
      : m_(m),
        channel_(world.team(), fmt::format("scatter m={} n={}", m, n),
                 PartialSums::words(m, world.size(), plan(), Way::kStage),
                 PartialSums::data_bytes(m, n, dtype, world.size(), plan(), Way::kStage), plan()),
        sums_(world.team(), m, n, 0, dtype, plan(copies), Way::kStage) {}
  void* partials() const { return sums_.staging(); }
  void run(Tensor const& out, Stream stream) {
    Call const call = channel_.begin("", stream);
    sums_.scatter(channel_, call, m_, out, {}, stream);
    channel_.finish(call, {}, stream);
  }

 private:
  using Way = PartialSums::Way;
  static Plan plan(int copies = kChosenCopies) {
    Plan p = parse_plan("fused=no buffers=1");
    p.copy_blocks = copies;
    return p;
  }
  int64_t m_;
  GpuChannel channel_;
  GpuPartialSums sums_;
};

/// One workload on this rank: buffers, operators, methods.
class Subject {
 public:
  Subject(World& world, GemmProblem const& problem, OverlapSuite const& options)
      : p(problem),
        plan(options.plan),
        own(part_of_rows(p.m, world.rank(), p.tp)),
        gathers(p.op == "ag_gemm"),
        x_all(p.m * p.rank_k() * 2),
        weight(p.rank_n() * p.rank_k() * 2),
        bias(p.rank_n() * 2),
        out_all(p.m * p.rank_n() * 2),
        out(p.m * p.columns() * 2),
        rest(own.size * p.columns() * 2) {
    plan.buffers = 1;  // a replayed graph uses one anyway, and a mirror needs each W times
    fill_random(x_all.data(), p.dtype, p.m * p.rank_k(), 1);
    fill_random(weight.data(), p.dtype, p.rank_n() * p.rank_k(), 2);
    fill_random(bias.data(), p.dtype, p.rank_n(), 3);
    if (gathers) {
      AllGatherGemm::Shape const shape{p.m, p.k, p.dtype};
      gather = std::make_unique<AllGatherGemm>(world, shape, plan);
      Plan alone = parse_plan("buffers=1");
      alone.copy_blocks = plan.copy_blocks, alone.path = plan.path;
      gather_alone = std::make_unique<AllGatherGemm>(world, shape, alone);
    } else {
      GemmReduceScatter::Shape const shape{p.m, p.n, p.dtype, p.k};
      scatter = std::make_unique<GemmReduceScatter>(world, shape, plan);
      scatter_alone = std::make_unique<ScatterAlone>(world, p.m, p.n, p.dtype, plan.copy_blocks);
    }
    must(cudaDeviceSynchronize());
  }

  Tensor weight_tensor() const {
    bool const out_in = p.layout == WeightLayout::kOutIn;
    return matrix(weight.data(), p.dtype, out_in ? p.rank_n() : p.rank_k(), out_in ? p.rank_k() : p.rank_n());
  }
  Tensor own_x() const {
    return matrix(static_cast<char*>(x_all.data()) + own.begin * p.rank_k() * 2, p.dtype, own.size, p.rank_k());
  }
  Tensor own_out() const { return matrix(out.data(), p.dtype, own.size, p.columns()); }
  Linear linear() const {
    Linear l;
    l.weight = weight_tensor(), l.layout = p.layout, l.out = matrix(out.data(), p.dtype, p.m, p.columns());
    if (p.epilogue == "bias_gelu")
      l.activation = Activation::kGelu, l.bias = matrix(bias.data(), p.dtype, 1, p.rank_n());
    if (p.gated()) l.activation = Activation::kSilu, l.gated = true;
    return l;
  }

  void fused(Stream stream) {
    if (gathers)
      gather->run(p.m, own_x(), linear(), stream);
    else
      scatter->run(p.m, matrix(x_all.data(), p.dtype, p.m, p.rank_k()), weight_tensor(), p.layout, own_out(), {},
                   stream);
  }
  void communication(Stream stream) {
    if (gathers)
      gather_alone->run(p.m, own_x(), std::span<Linear const>{}, {}, stream);
    else
      scatter_alone->run(own_out(), stream);
  }

  /// One eager call of the fused operator, a warm one.
  Timeline timeline() {
    Timeline line;
    line.title = p.describe();
    line.facts = {{"plan", to_string(plan)}};
    auto record = [&](Timeline* to) { gathers ? gather->record(to) : scatter->record(to); };
    fused(capture_stream());
    record(&line);
    fused(capture_stream());
    record(nullptr);
    return line;
  }

  /// The fused operator's, against fp64. What came in is not ours to know: gathered rows are asked for, the sums of the
  /// others' partials are what a call with zeros for x leaves.
  double error(int rows) {
    Stream const stream = capture_stream();
    must(cudaMemset(out.data(), 0xff, out.bytes()));
    double error = 0;
    if (gathers) {
      Buffer gathered(p.m * p.k * 2);
      must(cudaMemset(gathered.data(), 0xff, gathered.bytes()));
      Linear const l = linear();
      gather->run(p.m, own_x(), std::span(&l, 1), matrix(gathered.data(), p.dtype, p.m, p.k), stream);
      must(cudaStreamSynchronize(stream));
      error = error_of(p, gathered.data(), weight.data(), l.bias.data, out.data(), rows);
      must(cudaMemset(out.data(), 0xff, out.bytes()));
      fused(stream);  // as it is timed: own rows may be read elsewhere
      must(cudaStreamSynchronize(stream));
      double const timed = error_of(p, gathered.data(), weight.data(), l.bias.data, out.data(), rows);
      if (std::isnan(error) || std::isnan(timed)) return NAN;
      error = std::max(error, timed);
      return same(static_cast<char*>(gathered.data()) + own.begin * p.k * 2, own_x()) ? error : INFINITY;
    }
    Buffer zeros(p.m * p.rank_k() * 2);
    must(cudaMemset(zeros.data(), 0, zeros.bytes()));
    scatter->run(p.m, matrix(zeros.data(), p.dtype, p.m, p.rank_k()), weight_tensor(), p.layout,
                 matrix(rest.data(), p.dtype, own.size, p.columns()), {}, stream);
    fused(stream);
    must(cudaStreamSynchronize(stream));
    GemmProblem mine = p;
    mine.m = own.size;
    return error_of(mine, own_x().data, weight.data(), nullptr, out.data(), rows, rest.data());
  }

  GemmProblem p;
  Plan plan;
  Part own;
  bool gathers;
  Buffer x_all, weight, bias, out_all, out, rest;
  std::unique_ptr<AllGatherGemm> gather, gather_alone;
  std::unique_ptr<GemmReduceScatter> scatter;
  std::unique_ptr<ScatterAlone> scatter_alone;

 private:
  static bool same(void const* a, Tensor const& b) {
    std::vector<char> left(b.bytes()), right(b.bytes());
    must(cudaMemcpy(left.data(), a, left.size(), cudaMemcpyDeviceToHost));
    must(cudaMemcpy(right.data(), b.data, right.size(), cudaMemcpyDeviceToHost));
    return left == right;
  }
};

void run_problem(GemmProblem const& p, CublasLt& cublas, OverlapSuite const& options, std::mt19937& random,
                 std::vector<ResultRow>& rows) {
  int const rank = Shards{p.m, p.tp, 1}.owner(p.m / 2);  // one that owns rows, of few or many
  auto world = World::mirror(rank, p.tp, options.partner, {{}, 10, 20});
  Subject subject(*world, p, options);
  Stream const stream = capture_stream();
  double const error = subject.error(options.checked_rows);
  world->check();

  GemmProblem bare = p;
  bare.epilogue = "none";
  std::vector<GpuMethod> gemms =
      cublas.best(bare, subject.x_all.data(), subject.weight.data(), subject.out_all.data(), 2, random, stream);
  // One after the other: the fastest GEMM; its partial sums end where they are scattered from.
  GpuMethod const before = subject.gathers ? gemms.at(0)
                                           : cublas
                                                 .best(bare, subject.x_all.data(), subject.weight.data(),
                                                       subject.scatter_alone->partials(), 1, random, stream)
                                                 .at(0);
  std::vector<GpuMethod> methods = gemms;
  size_t const first = methods.size();
  methods.push_back({"comm", [&] { subject.communication(stream); }, {}});
  methods.push_back({"none",
                     [&] {
                       if (subject.gathers) subject.communication(stream);
                       before.run();
                       if (!subject.gathers) subject.communication(stream);
                     },
                     {}});
  // Both at once, neither waiting for the other: what the traffic costs the GEMM, and the GEMM the traffic. Not of a
  // reduce-scatter, whose slot sums wait on all processors.
  CopyStream beside;
  auto const both = [&] {
    beside.fork(stream);
    subject.communication(beside.stream());
    before.run();
    beside.join(stream);
  };
  if (subject.gathers) methods.push_back({"beside", both, {}});
  methods.push_back({"flux", [&] { subject.fused(stream); }, {}});
  for (std::string_view timing : {"graph", "eager"}) {
    if (!options.timing.empty() && options.timing != timing) continue;
    for (GpuMethod& method : methods) method.us.clear();
    if (timing == "graph")
      measure_graphs(methods, options.rounds, 1, random);
    else
      measure(methods, options.rounds, 1, random, stream);
    world->check();

    double gemm_us = INFINITY;
    for (size_t i = 0; i < first; ++i) gemm_us = std::min(gemm_us, methods[i].quantile(0.5));
    double const comm_us = methods[first].quantile(0.5), none_us = methods[first + 1].quantile(0.5);
    int64_t const columns = subject.gathers ? p.k : p.n;
    for (size_t i = first + 1; i < methods.size(); ++i) {
      bool const ours = methods[i].name == "flux";
      ResultRow row = row_of(p, methods[i]);
      row.world = "mirror", row.link = options.partner == Partner::kHost ? "pcie" : "device";
      row.duplex = true, row.incoming = "replay", row.timing = timing;
      row.gemm_us = gemm_us, row.gemm_by = "cublaslt", row.comm_us = comm_us;
      row.link_gbps = 1e-3 * (p.m - subject.own.size) * columns * 2 / comm_us;
      row.floor_us = std::max(gemm_us, comm_us);
      row.ect_us = row.total_us - gemm_us;
      if (none_us > gemm_us) row.efficiency = 1 - *row.ect_us / (none_us - gemm_us);
      if (ours) row.variant = options.variant, row.plan = "sm90 " + to_string(subject.plan), row.error = error;
      rows.push_back(row);
    }
  }
  if (options.timeline.empty()) return;
  Timeline line = subject.timeline();
  line.facts.emplace_back("world", "mirror over " + rows.back().link + ", both ways");
  std::filesystem::path const path = options.timeline;
  write_trace(path.parent_path() / fmt::format("{}-{}-m{}.json", path.stem().string(), p.workload, p.m), line);
}

}  // namespace

ResultFile overlap_suite(OverlapSuite const& options, std::function<void(int done, int all)> const& progress) {
  CublasLt cublas(options.cublaslt);
  std::mt19937 random(7);
  auto problems = read_problems(options.workloads, {options.tier}, {options.ranks}, options.least_m);
  std::erase_if(problems, [&](auto const& p) {
    return p.m > options.most_m || p.workload.find(options.only) == std::string::npos;
  });
  if (problems.empty())
    throw Error(ErrorKind::kInvalid, fmt::format("no workload of tier {} for {} ranks has '{}' in its name",
                                                 options.tier, options.ranks, options.only));
  return run_all(
      options.tier, problems,
      [&](GemmProblem const& p, std::vector<ResultRow>& rows) { run_problem(p, cublas, options, random, rows); },
      progress);
}

}  // namespace flux::bench
