#include "bench/case.h"

#include <fmt/format.h>

#include <cstring>

#include "bench/random.h"
#include "world/symmetric_memory.h"

namespace flux::bench {
namespace {

constexpr uint64_t kX = 1, kWeight = 2, kBias = 3, kRowScale = 4, kColumnScale = 5;  // seeds, added to the case's

/// Numbers of a type whose ones are few: int8 as it is made of floats, up to its largest.
double span_of(DType dtype) { return dtype == DType::kI8 ? 127 : 1; }

/// fp32 numbers that bring sums of such back to what other types have.
template <class Index>
OwnedTensor scales(DType dtype, int64_t count, uint64_t seed, Index&& index) {
  OwnedTensor t(DType::kF32, 1, count);
  for (int64_t i = 0; i < count; ++i)
    static_cast<float*>(t.view().data)[i] =
        static_cast<float>((1.5 + 0.5 * Uniform{seed}.at(0, index(i))) / span_of(dtype));
  return t;
}

// All ranks' inputs and outputs, before any of them is allocated.
void check_memory(Problem const& p, int ranks) {
  double const m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  double const needed = (2 * m * k + n * k + 2 * m * n * (p.op == Op::kAllGatherGemm ? 1 : ranks)) *
                        static_cast<double>(size_of(p.dtype));
  double const available = static_cast<double>(available_bytes());
  if (needed > available)
    throw Error(ErrorKind::kInvalid,
                fmt::format("m={} n={} k={} need about {:.3g} bytes of memory; this machine has {:.3g}", p.m, p.n, p.k,
                            needed, available));
}

int64_t local_columns(World& world, Problem const& p) {
  int64_t const width = p.gated ? p.n / 2 : p.n;
  return p.op == Op::kAllGatherGemm ? part_of_columns(width, world.rank(), world.size()).size : p.n;
}

}  // namespace

void check_problem(Problem const& p) {
  for (auto [size, letter] : {std::pair{p.m, 'm'}, {p.n, 'n'}, {p.k, 'k'}})
    if (size < 0 || size > int64_t{1} << 31)
      throw Error(ErrorKind::kInvalid, fmt::format("{} is {}; sizes are 0 to 2147483648", letter, size));
  if (p.op != Op::kAllGatherGemm && (p.activation != Activation::kNone || p.gated))
    throw Error(ErrorKind::kInvalid, fmt::format("{} has no activation; only ag_gemm applies one", name(p.op)));
  if (p.gated && p.n % 2 != 0)
    throw Error(ErrorKind::kInvalid, fmt::format("n is {} for a gated layer, which needs an even n: gate and up", p.n));
}

Timeline timeline_of(Problem const& p, int ranks) {
  Timeline timeline;
  timeline.title = fmt::format("{} on {} ranks", name(p.op), ranks);
  timeline.facts = {{"problem", fmt::format("m {} n {} k {} {}", p.m, p.n, p.k, name(p.dtype))}};
  return timeline;
}

Case::Case(World& world, Problem const& problem, Plan const& plan, uint64_t seed)
    : world_(world),
      problem_(problem),
      seed_(seed),
      placed_(world),
      tiled_(plan),
      whole_(PlainGemm::whole(problem.m, local_columns(world, problem))) {
  check_problem(problem);
  check_memory(problem, world.size());
  int const rank = world.rank(), ranks = world.size();
  auto const& p = problem;
  bool const gathers = p.op == Op::kAllGatherGemm, out_in = p.layout == WeightLayout::kOutIn;
  int64_t const width = p.gated ? p.n / 2 : p.n;
  Part const rows = part_of_rows(p.m, rank, ranks);
  Part const columns = gathers ? part_of_columns(width, rank, ranks) : Part{0, p.n};
  Part const depth = gathers ? Part{0, p.k} : part_of_columns(p.k, rank, ranks, k_unit(p.dtype));
  int64_t const n_r = columns.size * (p.gated ? 2 : 1);

  x_ = OwnedTensor(p.dtype, gathers ? rows.size : p.m, depth.size);
  double const span = span_of(p.dtype);
  DType const result = result_of(p.dtype);
  Uniform{seed + kX, span}.fill(x_, gathers ? rows.begin : 0, depth.begin);
  weight_ = OwnedTensor(p.dtype, out_in ? n_r : depth.size, out_in ? depth.size : n_r);
  for (int half = 0; half < (p.gated ? 2 : 1); ++half) {  // gate, then up
    Tensor part = weight_;
    part.data = out_in ? part.row(half * columns.size) : host::element(part.data, p.dtype, half * columns.size);
    (out_in ? part.rows : part.columns) = columns.size;
    Uniform{seed + kWeight, span}.fill(part, columns.begin + half * width, depth.begin, !out_in);
  }
  auto const global = [&](int64_t j) { return columns.begin + (j < columns.size ? j : j - columns.size + width); };
  if (p.bias) {
    bias_ = OwnedTensor(result, 1, n_r);
    for (int64_t j = 0; j < n_r; ++j) {
      double const value = Uniform{seed + kBias}.at(0, global(j));
      host::narrow(&value, host::element(bias_.view().data, result, j), result, 1);
    }
  }
  there_ = {placed_.place(x_), placed_.place(weight_), {}, {}, {}};
  if (size_of(p.dtype) == 1) {
    row_scales_ = scales(p.dtype, p.m, seed + kRowScale, [](int64_t i) { return i; });
    column_scales_ = scales(p.dtype, n_r, seed + kColumnScale, global);
    there_.scales = {placed_.place(row_scales_), placed_.place(column_scales_)};
  }
  if (p.bias) there_.bias = placed_.place(bias_);
  int64_t const out_rows = p.op == Op::kGemmReduceScatter ? rows.size : p.m;
  out_ = OwnedTensor(result, out_rows, columns.size);
  there_.out = placed_.place(out_);
  all_rows_ = OwnedTensor(p.dtype, p.m, depth.size);
  Uniform{seed + kX, span}.fill(all_rows_, 0, depth.begin);
  gemm_out_ = OwnedTensor(result, p.m, columns.size);

  for (int fused = 0; fused < 2; ++fused) {
    Plan one = plan;
    one.fused = fused == 1;
    if (gathers) gather_[fused] = std::make_unique<AllGatherGemm>(world, gather_shape(), one);
    if (p.op == Op::kGemmReduceScatter) scatter_[fused] = std::make_unique<GemmReduceScatter>(world, sum_shape(), one);
    if (p.op == Op::kGemmAllReduce) reduce_[fused] = std::make_unique<GemmAllReduce>(world, sum_shape(), one);
  }
  if (!world.on_gpu()) comm_ = std::make_unique<GatherAlone>(world, p.m, gathers ? p.k : p.n, travels(), Plan{});
}

/// What rows that travel are of.
DType Case::travels() const { return problem_.op == Op::kAllGatherGemm ? problem_.dtype : result_of(problem_.dtype); }

AllGatherGemm::Shape Case::gather_shape() const {
  auto const& p = problem_;
  return {p.m, p.k, p.dtype, p.n, p.layout, p.gated};
}
GemmReduceScatter::Shape Case::sum_shape() const {
  auto const& p = problem_;
  return {p.m, p.n, p.dtype, p.k, p.layout};
}

Plan const& Case::plan() const {
  return gather_[1] ? gather_[1]->plan() : scatter_[1] ? scatter_[1]->plan() : reduce_[1]->plan();
}

Linear Case::linear(Tensor const& out) const {
  Linear l;
  l.weight = weight_, l.out = out, l.layout = problem_.layout;
  if (problem_.bias) l.bias = bias_;
  l.activation = problem_.activation, l.gated = problem_.gated;
  if (size_of(problem_.dtype) == 1) l.scales = {row_scales_, column_scales_};
  return l;
}

void Case::run(bool fused) {
  auto const& p = problem_;
  auto const& [x, weight, bias, out, scales] = there_;
  SumEpilogue epilogue;
  epilogue.bias = bias, epilogue.scales = scales;
  Linear layer = linear(out);
  layer.weight = weight, layer.bias = bias, layer.scales = scales;
  switch (p.op) {
    case Op::kAllGatherGemm: return gather_[fused]->run(p.m, x, std::span(&layer, 1), {}, placed_.stream());
    case Op::kGemmReduceScatter: return scatter_[fused]->run(p.m, x, weight, p.layout, out, epilogue, placed_.stream());
    case Op::kGemmAllReduce: return reduce_[fused]->run(p.m, x, weight, p.layout, out, epilogue, placed_.stream());
  }
}

Subject Case::subject() {
  Subject subject;
  subject.run = [this](bool fused) { run(fused); };
  subject.gemms = {{"flux", [this] { tiled_.run(all_rows_, linear(gemm_out_)); }},
                   {"eigen", [this] { whole_.run(all_rows_, linear(gemm_out_)); }}};
  subject.comm = [this] {
    comm_->run();
    if (problem_.op == Op::kGemmAllReduce) comm_->run();  // there and back
  };
  subject.sent_bytes = sent_bytes();
  return subject;
}

void Case::record(Timeline* timeline) {
  if (gather_[1]) gather_[1]->record(timeline);
  if (scatter_[1]) scatter_[1]->record(timeline);
  if (reduce_[1]) reduce_[1]->record(timeline);
}

int64_t Case::sent_bytes() const {
  auto const& p = problem_;
  int64_t const columns = p.op == Op::kAllGatherGemm ? p.k : p.n;
  int64_t const once = GatherAlone::sent_bytes(p.m, columns, travels(), world_.size());
  return p.op == Op::kGemmAllReduce ? 2 * once : once;
}

int64_t Case::shared_bytes() const {
  int const ranks = world_.size();
  switch (problem_.op) {
    case Op::kAllGatherGemm: return AllGatherGemm::shared_bytes(gather_shape(), ranks, plan());
    case Op::kGemmReduceScatter: return GemmReduceScatter::shared_bytes(sum_shape(), ranks, plan());
    case Op::kGemmAllReduce: return GemmAllReduce::shared_bytes(sum_shape(), ranks, plan());
  }
  return 0;
}

MemoryNeed Case::memory() const {
  switch (problem_.op) {
    case Op::kAllGatherGemm: return AllGatherGemm::memory(world_, gather_shape(), plan());
    case Op::kGemmReduceScatter: return GemmReduceScatter::memory(world_, sum_shape(), plan());
    case Op::kGemmAllReduce: return GemmAllReduce::memory(world_, sum_shape(), plan());
  }
  return {};
}

double Case::error(int64_t most) {
  auto const& p = problem_;
  std::memset(out_.view().data, 0xff, out_.view().bytes());
  placed_.copy(out_, there_.out);
  world_.barrier();  // ranks of one GPU: nobody copies while another's call waits for it
  run(true);
  placed_.copy(there_.out, out_);
  world_.check();
  std::vector<int64_t> const rows = sampled_rows(p.m, most);
  Matrix64 x{static_cast<int64_t>(rows.size()), all_rows_.view().columns, {}};
  for (int64_t r : rows) {
    Matrix64 const one = widened(matrix(all_rows_.view().row(r), p.dtype, 1, x.columns));
    x.values.insert(x.values.end(), one.values.begin(), one.values.end());
  }
  Matrix64 y;
  Part owned{0, p.m};
  if (p.op == Op::kAllGatherGemm) {
    host::Launch halves;  // where gate and up lie
    halves.set(linear(out_), 0);
    Matrix64 up;
    y = product(x, halves.weight, p.layout);
    scale(y, rows, row_scales_, halves.scales.columns);
    if (p.bias) add_row(y, halves.bias);
    if (p.gated) up = product(x, halves.up, p.layout), scale(up, rows, row_scales_, halves.up_scale);
    if (p.gated && p.bias) add_row(up, halves.up_bias);
    activate(y, p.activation, p.gated ? &up : nullptr);
  } else {
    Matrix64 partial = product(x, weight_, p.layout);
    scale(partial, rows, row_scales_, column_scales_);
    y = sum_over_ranks(world_, partial);
    if (p.bias) add_row(y, bias_);
    if (p.op == Op::kGemmReduceScatter) owned = part_of_rows(p.m, world_.rank(), world_.size());
  }
  Deviation deviation;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < owned.begin || rows[i] >= owned.begin + owned.size) continue;
    Matrix64 const want{1, y.columns, {y.row(i), y.row(i) + y.columns}};
    deviation.add(matrix(out_.view().row(rows[i] - owned.begin), out_.view().dtype, 1, y.columns), want);
  }
  return relative_over_ranks(world_, deviation);
}

}  // namespace flux::bench
