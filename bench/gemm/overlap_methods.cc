#include "bench/gemm/overlap_methods.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/gemm/graph_timing.h"
#include "bench/slowest.h"
#include "op/gpu/tiles.h"
#include "plan/machine.h"

namespace flux::bench {
namespace {

/// One that owns rows, however few there are.
int rank_of(GemmProblem const& p) { return Shards{p.m, p.tp, 1}.owner(p.m / 2); }

/// Results hold numbers: what is none is as wrong as can be.
double written(double error) { return error < 1e9 ? error : 1e9; }

/// Copies of a weight that together are more than twice the L2.
int weights_beyond_cache(int64_t bytes) {
  int l2 = 0;
  must(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0));
  return static_cast<int>(std::max<int64_t>(2, 2 * int64_t{l2} / std::max<int64_t>(bytes, 1) + 1));
}

}  // namespace

OverlapMethods::OverlapMethods(GemmProblem const& p, OverlapSuite const& options, CublasLt& cublas,
                               std::mt19937& random)
    : options_(options),
      stream_(capture_stream()),
      mirror_(options.world ? nullptr : World::mirror(rank_of(p), p.tp, options.partner, {{}, 10, 20})),
      world_(options.world ? *options.world : *mirror_),
      ranks_(options.world ? std::make_unique<Lockstep>(world_) : nullptr),
      subject_(world_, p, options.cold ? weights_beyond_cache(p.rank_n() * p.rank_k() * 2) : 1),
      collectives_(world_, subject_, options.nccl) {
  add_fused(options.plan, options.variant);
  for (std::string const& line : p.plans) try_fused(line);
  choose_baselines(cublas, random);
  add_alone();
  if (options.budget) add_kernel_alone();
  add_rows();
  keep_largest_errors();
}

void OverlapMethods::add_fused(Plan const& plan, std::string const& variant) {
  fused_.push_back(subject_.make(plan, variant));
  errors_.push_back(subject_.error(fused_.back(), options_.checked_rows));
  world_.check();
}

void OverlapMethods::try_fused(std::string const& line) {
  try {
    add_fused(parse_plan(line, options_.plan), line);
  } catch (Error const& error) {
    if (error.kind() != ErrorKind::kInvalid && error.kind() != ErrorKind::kUnsupported) throw;
    options_.note(fmt::format("{}: {} was left out: {}", problem().workload, line, error.what()));
  }
}

// A trial finds the fastest GEMM and the fastest collective; both are timed again with the methods.
void OverlapMethods::choose_baselines(CublasLt& cublas, std::mt19937& random) {
  GemmProblem bare = problem();
  bare.epilogue = "none";
  gemms_ = cublas.fastest(bare, subject_.x_all.data(), subject_.weight(), subject_.product().data, 2, random, stream_);
  if (ranks_) gemms_.resize(ranks_->least(gemms_.size()));  // each rank its own best, as many on all
  std::vector<GpuMethod> trials;
  for (Collective const& way : collectives_.ways()) trials.push_back({way.name, [&] { way.run(stream_); }, {}});
  measure_graphs(trials, bare.m < 4096 ? 7 : 3, 1, random, {}, ranks_.get());
  for (size_t i = 1; i < trials.size(); ++i)
    if (trials[i].quantile(0.5) < trials[used_].quantile(0.5)) used_ = i;
  if (bare.op == "gemm_ar") return;
  Tensor const x = subject_.gathers() ? subject_.own_x() : subject_.all_x();
  chunked_ = std::make_unique<Chunked>(collectives_.exchange(), bare, cublas, x, subject_.weight(), random, stream_);
}

void OverlapMethods::add(Label label, std::string name, std::function<void()> run) {
  labels.push_back(std::move(label)), methods.push_back({std::move(name), std::move(run), {}});
}

void OverlapMethods::add_alone() {
  for (auto const& gemm : gemms_)
    add({Label::kGemm}, gemm.name,
        [this, &gemm] { gemm.multiply(subject_.x_all.data(), subject_.weight(), subject_.product().data); });
  for (Collective const& way : collectives_.ways())
    add({Label::kCollective}, way.name, [this, &way] { way.run(stream_); });
}

// Our GEMM in the tiles that the operator takes, plain, and fused with nothing to wait for.
void OverlapMethods::add_kernel_alone() {
  GemmProblem const& p = problem();
  Gpu const& gpu = *world_.team().gpu();
  Plan const& plan = fused().plan;
  Carried const what = subject_.gathers() ? Carried::kRows : Carried::kPartials;
  int64_t const at_once = rows_at_once(plan, what, p.m, p.tp, (subject_.gathers() ? p.k : p.n) * 2, gpu.across_pcie());
  bool const in_pieces = plan.fused && gpu.across_pcie();
  TiledRows const to_tile = rows_to_tile(p.m, at_once, in_pieces);
  Tiles const tiles = choose_tiles(plan, to_tile, p.rank_n(), p.rank_k(), p.layout, p.gated(), p.dtype, gpu.chip());
  alone_ = std::make_unique<GemmBuffers>(p);
  GemmLaunch const plain = plain_launch(p, *alone_, tiles.tile, tiles.band);
  GemmLaunch const open = open_launch(p, *alone_, tiles.tile, tiles.band);
  add({Label::kPlain}, "plain", [this, plain] { enqueue_gemm(plain, stream_); });
  add({Label::kOpen}, "flux_open", [this, open] { enqueue_gemm(open, stream_); });
}

void OverlapMethods::add_rows() {
  if (options_.decodes()) add({Label::kRow}, "comm", [this] { collectives_.ways()[used_].run(stream_); });
  std::vector<double> errors;  // by each collective: one that is wrong may not hide behind one that is faster
  for (size_t way = 0; ranks_ && way < collectives_.ways().size(); ++way) errors.push_back(error_of_none(way));
  std::optional<double> largest;
  if (ranks_) largest = *std::ranges::max_element(errors);
  add({Label::kRow, {}, {}, largest}, "none", [this] { run_none(used_); });
  if (int const nccl = collectives_.nccl(); nccl >= 0)
    add({Label::kRow, {}, {}, errors[nccl]}, "nccl", [this, nccl] { run_none(nccl); });
  // Both at once, neither waiting for the other: what the traffic costs the GEMM, and the GEMM the traffic. Not of a
  // reduce-scatter, whose slot sums wait on all processors.
  if (subject_.gathers())
    add({Label::kRow}, "beside", [this] {
      beside_.fork(stream_);
      collectives_.ways()[0].run(beside_.stream());
      multiply(subject_.product().data);
      beside_.join(stream_);
    });
  if (chunked_) add({Label::kRow, {}, {}, error_of_chunked()}, "chunked", [this] { run_chunked(); });
  std::string const engine(name(world_.team().gpu()->chip().engine));
  for (size_t i = 0; i < fused_.size(); ++i)
    add({Label::kRow, fused_[i].variant, engine + " " + to_string(fused_[i].plan), errors_[i]}, "flux",
        [this, i] { subject_.run(fused_[i], stream_); });
}

// The best GEMM and a collective, one after the other. Real ranks multiply what the collective brought, where that is
// to be had.
void OverlapMethods::run_none(size_t way) {
  Collective const& collective = collectives_.ways()[way];
  if (!subject_.gathers()) {
    multiply(collective.partials);
    collective.run(stream_);
    return;
  }
  collective.run(stream_);
  void const* const x = ranks_ && collective.result ? collective.result : subject_.x_all.data();
  gemms_[0].multiply(x, subject_.weight(), subject_.product().data);
}

double OverlapMethods::error_of_run(std::function<void()> const& run, void const* result, int64_t bytes) {
  must(cudaMemset(const_cast<void*>(result), 0xff, bytes));
  must(cudaDeviceSynchronize());
  world_.barrier();  // others write into it
  run();
  must(cudaStreamSynchronize(stream_));
  world_.check();
  double const error = written(subject_.error_of_plain(result, options_.checked_rows));
  world_.barrier();  // all of it is read
  return error;
}

// AG: the others' rows are to come.
void OverlapMethods::poison_gathered(void const* rows) {
  if (!subject_.gathers() || !rows) return;
  auto* const all = static_cast<char*>(const_cast<void*>(rows));
  int64_t const row_bytes = problem().k * 2, end = subject_.own.begin + subject_.own.size;
  must(cudaMemset(all, 0xff, subject_.own.begin * row_bytes));
  must(cudaMemset(all + end * row_bytes, 0xff, (problem().m - end) * row_bytes));
}

double OverlapMethods::error_of_none(size_t way) {
  Tensor const rows = subject_.gathers() ? subject_.product() : subject_.own_out();
  Collective const& collective = collectives_.ways()[way];
  void const* const result = subject_.gathers() ? rows.data : collective.result;
  poison_gathered(collective.result);
  return error_of_run([&] { run_none(way); }, result, rows.bytes());
}

// One wrong rank is enough.
void OverlapMethods::keep_largest_errors() {
  std::vector<std::vector<double>> all{{}};
  auto each = [&](auto&& act) {
    for (Label& label : labels)
      if (label.error) act(*label.error);
  };
  each([&](double error) { all[0].push_back(written(error)); });
  if (ranks_) all = slowest(world_, all);
  size_t i = 0;
  each([&](double& error) { error = all[0][i++]; });
}

void OverlapMethods::run_chunked() {
  chunked_->run(subject_.weight(), subject_.gathers() ? subject_.product() : subject_.own_out(), stream_);
}

double OverlapMethods::error_of_chunked() {
  if (!ranks_) return error_of_chunked_in_mirror();
  Tensor const result = subject_.gathers() ? subject_.product() : subject_.own_out();
  poison_gathered(collectives_.exchange().rows());
  return error_of_run([&] { run_chunked(); }, result.data, result.bytes());
}

double OverlapMethods::error_of_chunked_in_mirror() {
  Exchange& exchange = collectives_.exchange();
  Tensor const result = subject_.gathers() ? subject_.product() : subject_.own_out();
  Buffer zeros(result.bytes() + 16), rest(result.bytes() + 16);
  must(cudaMemset(zeros.data(), 0, zeros.bytes()));
  must(cudaMemset(result.data, 0xff, result.bytes()));
  must(cudaDeviceSynchronize());  // a memset does not wait for our stream, nor that for it
  run_chunked();
  if (subject_.gathers()) {  // our own rows were multiplied where they lie
    Tensor const own = subject_.own_x();
    must(cudaMemcpyAsync(exchange.rows() + subject_.own.begin * problem().k * 2, own.data, own.bytes(),
                         cudaMemcpyDeviceToDevice, stream_));
  } else {
    Tensor others = result;
    others.data = rest.data();
    exchange.sum_again(others, static_cast<std::byte*>(zeros.data()), stream_);
  }
  must(cudaStreamSynchronize(stream_));
  world_.check();
  if (subject_.gathers()) return subject_.error_of_gathered(exchange.rows(), result.data, options_.checked_rows);
  return subject_.error_of_sum(result.data, rest.data(), options_.checked_rows);
}

size_t OverlapMethods::fastest(Label::Kind kind) const {
  size_t best = methods.size();
  for (size_t i = 0; i < methods.size(); ++i)
    if (labels[i].kind == kind && (best == methods.size() || median(i) < median(best))) best = i;
  return best;
}

}  // namespace flux::bench
