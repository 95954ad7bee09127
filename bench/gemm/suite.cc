// Every per-rank GEMM of the workloads by our kernel (plain, and fused with nothing to wait for), by
// the best of cuBLASLt and by stock CUTLASS, interleaved, checked against fp64, as one result file.
#include <algorithm>
#include <memory>

#include "bench/gemm/cublaslt.h"
#include "bench/gemm/ours.h"
#include "bench/gemm/reference.h"
#include "bench/gemm/result.h"
#include "bench/gemm/stock.h"
#include "bench/gemm/suite.h"
#include "bench/gemm/timing.h"
#include "engine/sm90/config.h"
#include "plan/choose_tile.h"
#include "plan/machine.h"
#include "world/gpu.h"

namespace flux::bench {
namespace {

std::string plan_of(Choice const& choice) {
  TileRow const& tile = choice.tile;
  std::string plan = "engine=" + std::string(name(tile.engine)) + " tile=" + std::to_string(tile.tile_m) + "x" +
                     std::to_string(tile.tile_n) + " band=" + std::to_string(choice.band);
  if (tile.engine == EngineKind::kSm90) {
    sm90::Config const& c = sm90::kTable[tile.row];
    plan += " cluster=" + std::to_string(c.cluster_m) + "x" + std::to_string(c.cluster_n) +
            (c.ping_pong ? " groups=ping-pong" : " groups=cooperative");
  }
  return plan;
}

/// A method's samples as a row of the result file.
ResultRow row_of(GemmProblem const& p, GpuMethod const& method, std::string name, double error, double best_us,
                 std::string const& plan) {
  ResultRow row = row_of(p, method);
  row.op = "gemm", row.world = "single", row.link = "device", row.method = std::move(name);
  row.gemm_us = best_us, row.gemm_by = size_of(p.dtype) == 1 ? "flux" : "cublaslt";
  if (!plan.empty()) row.plan = plan;
  row.error = error;
  return row;
}

void run_problem(GemmProblem const& p, CublasLt& cublas, GemmSuite const& options, std::mt19937& random,
                 std::vector<ResultRow>& rows) {
  GemmBuffers buffers(p);
  Buffer workspace(16 << 20), raw(p.m * p.rank_n() * 2);  // cuBLASLt and CUTLASS: no epilogue, all n columns
  bool const library = size_of(p.dtype) > 1;
  Chip const chip = chip_for(chip_of_device(0), p.dtype);
  Choice const choice = choose_tile({p.m}, p.rank_n(), depth_of(p.rank_k(), p.dtype), p.layout, p.gated(), chip);

  std::vector<GpuMethod> methods;
  struct Label {
    std::string name, variant;
    bool raw;
  };
  std::vector<Label> labels;
  if (library)
    for (auto& m : cublas.best(p, buffers.x.data(), buffers.weight.data(), raw.data(), 3, random))
      labels.push_back({"cublaslt", m.name, true}), methods.push_back(std::move(m));
  std::vector<GpuMethod> stock =
      chip.engine == EngineKind::kSm80
          ? stock_mma_sync(p, buffers.x.data(), buffers.weight.data(), raw.data())
          : stock_cutlass(p, buffers.x.data(), buffers.weight.data(), raw.data(), workspace.data());
  measure(stock, 3, 1, random);
  std::sort(stock.begin(), stock.end(), [](auto& a, auto& b) { return a.quantile(0.5) < b.quantile(0.5); });
  if (!stock.empty()) {
    stock[0].us.clear();
    labels.push_back({"cutlass", stock[0].name, true}), methods.push_back(stock[0]);
  }
  GemmLaunch const plain = plain_launch(p, buffers, choice.tile, choice.band);
  GemmLaunch const open = open_launch(p, buffers, choice.tile, choice.band);
  labels.push_back({"flux", "", false}), methods.push_back({"flux", [plain] { enqueue_gemm(plain, nullptr); }, {}});
  labels.push_back({"flux_open", "", false}),
      methods.push_back({"flux_open", [open] { enqueue_gemm(open, nullptr); }, {}});

  std::vector<double> errors;
  GemmProblem bare = p;
  bare.epilogue = "none";
  for (size_t i = 0; i < methods.size(); ++i) {
    Buffer const& out = labels[i].raw ? raw : buffers.out;
    must(cudaMemset(out.data(), 0xff, out.bytes()));
    methods[i].run();
    must(cudaDeviceSynchronize());
    bool const biased = !labels[i].raw && p.epilogue == "bias_gelu";
    errors.push_back(error_of(labels[i].raw ? bare : p, buffers.x.data(), buffers.weight.data(),
                              biased ? buffers.bias.data() : nullptr, out.data(), options.checked_rows));
  }
  double const seconds = 2e-12 * p.m * p.rank_n() * p.rank_k() / 700;
  measure(methods, options.rounds, std::clamp(static_cast<int>(0.5e-3 / seconds), 1, 8), random);

  size_t best = 0;
  for (size_t i = 0; i < methods.size() && labels[i].name == "cublaslt"; ++i)
    if (methods[i].quantile(0.5) < methods[best].quantile(0.5)) best = i;
  double const best_us = methods[best].quantile(0.5);
  for (size_t i = 0; i < methods.size(); ++i) {
    if (labels[i].name == "cublaslt" && i != best) continue;
    bool const ours = !labels[i].raw;
    rows.push_back(
        row_of(p, methods[i], labels[i].name, errors[i], best_us, ours ? plan_of(choice) : labels[i].variant));
  }
}

}  // namespace

std::vector<Unit> gemm_suite(GemmSuite const& options) {
  struct Shared {
    CublasLt cublas;
    std::mt19937 random;
    GemmSuite options;
  };
  std::shared_ptr<Shared> const shared(new Shared{CublasLt(options.cublaslt), std::mt19937(7), options});
  std::vector<Unit> units;
  for (GemmProblem p : read_problems(options.workloads, options.tiers, options.ranks, options.least_m)) {
    if (options.dtype) p.dtype = *options.dtype;
    if (size_of(p.dtype) == 1 && p.layout == WeightLayout::kInOut) continue;  // no engine takes it
    ResultRow problem = problem_row(p);
    problem.op = "gemm";
    double const gemm_us = 2e-6 * p.m * p.rank_n() * p.rank_k() / 700;
    units.push_back({problem, 2e5 + (options.rounds + 60) * 6 * gemm_us, [shared, p] {
                       std::vector<ResultRow> rows;
                       run_problem(p, shared->cublas, shared->options, shared->random, rows);
                       return rows;
                     }});
  }
  return units;
}

}  // namespace flux::bench
