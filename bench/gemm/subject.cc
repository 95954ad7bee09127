#include "bench/gemm/subject.h"

#include <algorithm>
#include <cmath>

#include "bench/gemm/graph_timing.h"
#include "bench/gemm/lockstep.h"
#include "bench/gemm/reference.h"
#include "op/gpu/packets.h"
#include "world/team.h"

namespace flux::bench {
namespace {

/// Now, before anything that is enqueued from here on on any stream.
void set_bytes(Buffer const& buffer, int value) {
  must(cudaMemset(buffer.data(), value, buffer.bytes()));
  must(cudaDeviceSynchronize());
}

/// Of the random operands: ranks have their own, but for the rows of AG, which are parts of one matrix.
enum class Operand : uint32_t { kX = 1, kWeight, kBias };
uint32_t seed_of(Operand operand, int rank) { return static_cast<uint32_t>(operand) + 4 * static_cast<uint32_t>(rank); }

bool same(void const* a, Tensor const& b) {
  std::vector<char> left(b.bytes()), right(b.bytes());
  must(cudaMemcpy(left.data(), a, left.size(), cudaMemcpyDeviceToHost));
  must(cudaMemcpy(right.data(), b.data, right.size(), cudaMemcpyDeviceToHost));
  return left == right;
}

}  // namespace

Subject::Subject(World& world, GemmProblem const& problem, int weights)
    : p(problem),
      own(part_of_rows(p.m, world.rank(), p.tp)),
      x_all(p.m * p.rank_k() * 2),
      bias(p.rank_n() * 2),
      out(p.m * p.columns() * 2),
      world_(world),
      mirrored_(world.team().gpu()->mirrored()),
      product_(p.m * p.rank_n() * 2) {
  int const rank = world.rank();
  fill_random(x_all.data(), p.dtype, p.m * p.rank_k(), seed_of(Operand::kX, gathers() ? 0 : rank));
  fill_random(bias.data(), p.dtype, p.rank_n(), seed_of(Operand::kBias, rank));
  for (int i = 0; i < weights; ++i) {  // all the same, so that one check is good for all
    weights_.push_back(std::make_unique<Buffer>(p.rank_n() * p.rank_k() * 2));
    fill_random(weights_.back()->data(), p.dtype, p.rank_n() * p.rank_k(), seed_of(Operand::kWeight, rank));
  }
  must(cudaDeviceSynchronize());
}

Subject::Fused Subject::make(Plan plan, std::string variant) const {
  plan.buffers = 1;  // a replayed graph uses one anyway, and a mirror needs each W times
  Fused fused{std::move(variant), plan, nullptr, nullptr, nullptr};
  GemmReduceScatter::Shape const sums{p.m, p.n, p.dtype, p.k, p.layout};
  if (p.op == "gemm_ar")
    fused.all_reduce = std::make_unique<GemmAllReduce>(world_, sums, plan);
  else if (gathers())
    fused.gather = std::make_unique<AllGatherGemm>(
        world_, AllGatherGemm::Shape{p.m, p.k, p.dtype, p.n, p.layout, p.gated()}, plan);
  else
    fused.scatter = std::make_unique<GemmReduceScatter>(world_, sums, plan);
  fused.plan = fused.gather ? fused.gather->plan() : fused.scatter ? fused.scatter->plan() : fused.all_reduce->plan();
  return fused;
}

Tensor Subject::weight_tensor() const {
  bool const out_in = p.layout == WeightLayout::kOutIn;
  return matrix(weight(), p.dtype, out_in ? p.rank_n() : p.rank_k(), out_in ? p.rank_k() : p.rank_n());
}

Tensor Subject::own_x() const {
  return matrix(static_cast<char*>(x_all.data()) + own.begin * p.rank_k() * 2, p.dtype, own.size, p.rank_k());
}

Tensor Subject::own_out() const { return matrix(out.data(), p.dtype, p.op == "gemm_rs" ? own.size : p.m, p.columns()); }

Linear Subject::linear() const {
  Linear l;
  l.weight = weight_tensor(), l.layout = p.layout, l.out = own_out();
  if (p.epilogue == "bias_gelu") l.activation = Activation::kGelu, l.bias = matrix(bias.data(), p.dtype, 1, p.rank_n());
  if (p.gated()) l.activation = Activation::kSilu, l.gated = true;
  return l;
}

void Subject::sum(Fused const& fused, void const* x, Tensor const& to, Stream stream) const {
  Tensor const rows = matrix(const_cast<void*>(x), p.dtype, p.m, p.rank_k());
  if (fused.scatter) fused.scatter->run(p.m, rows, weight_tensor(), p.layout, to, {}, stream);
  if (fused.all_reduce) fused.all_reduce->run(p.m, rows, weight_tensor(), p.layout, to, {}, stream);
}

void Subject::run(Fused const& fused, Stream stream) const {
  if (fused.gather)
    fused.gather->run(p.m, own_x(), linear(), stream);
  else
    sum(fused, x_all.data(), own_out(), stream);
}

Timeline Subject::record(Fused const& fused, Lockstep* ranks) const {
  constexpr int64_t kHoldNs = 6'000'000;  // longer than the host needs to enqueue a call
  auto keep = [&](Timeline* to) {
    if (fused.gather) fused.gather->record(to);
    if (fused.scatter) fused.scatter->record(to);
    if (fused.all_reduce) fused.all_reduce->record(to);
  };
  Timeline line;
  line.title = p.describe();
  line.facts = {{"plan", to_string(fused.plan)}};
  hold(kHoldNs, capture_stream());
  if (ranks) ranks->meet(capture_stream());
  keep(&line);
  run(fused, capture_stream());
  keep(nullptr);
  return line;
}

double Subject::error(Fused const& fused, int rows) {
  if (mirrored_) return error_in_mirror(fused, rows);
  set_bytes(out, 0xff);
  run(fused, capture_stream());
  must(cudaStreamSynchronize(capture_stream()));
  return error_among_ranks(p, own_out().data, rows);
}

double Subject::error_of_plain(void const* result, int rows) {
  GemmProblem bare = p;
  bare.epilogue = "none";
  return error_among_ranks(bare, result, rows);
}

double Subject::error_among_ranks(GemmProblem const& with, void const* result, int rows) {
  if (gathers()) {
    void const* const added = with.epilogue == "none" ? nullptr : linear().bias.data;
    return error_of(with, x_all.data(), weight(), added, result, rows);
  }
  GemmProblem mine = with;
  if (p.op == "gemm_rs") mine.m = own.size;
  if (mine.m == 0) return 0;  // fewer rows than ranks: nothing is ours
  void const* const x = p.op == "gemm_rs" ? own_x().data : x_all.data();
  return error_of(mine, x, weight(), nullptr, result, rows, nullptr, others(rows));
}

// Their operands are made here once more, a rank at a time: numbers of their seeds.
double const* Subject::others(int rows) {
  if (others_) return static_cast<double const*>(others_->data());
  GemmProblem mine = p;
  Part const summed = p.op == "gemm_rs" ? own : Part{0, p.m};
  mine.m = summed.size;
  others_ = std::make_unique<Buffer>(rows * p.columns() * static_cast<int64_t>(sizeof(double)));
  set_bytes(*others_, 0);
  Buffer x(summed.size * p.rank_k() * 2), theirs(p.rank_n() * p.rank_k() * 2);
  for (int r = 0; r < p.tp; ++r) {
    if (r == world_.rank()) continue;
    fill_random(x.data(), p.dtype, summed.size * p.rank_k(), seed_of(Operand::kX, r), summed.begin * p.rank_k());
    fill_random(theirs.data(), p.dtype, p.rank_n() * p.rank_k(), seed_of(Operand::kWeight, r));
    add_products(mine, x.data(), theirs.data(), rows, static_cast<double*>(others_->data()));
  }
  must(cudaDeviceSynchronize());
  return static_cast<double const*>(others_->data());
}

double Subject::error_in_mirror(Fused const& fused, int rows) {
  Stream const stream = capture_stream();
  set_bytes(out, 0xff);
  Op const op = parse_op(p.op);
  PacketShots const shots = GpuPackets::shots(world_.team(), {op, p.m, p.n, p.dtype}, fused.plan, p.m);
  if (!fused.gather && shots != PacketShots::kNone)
    return error_of_packets(fused, op == Op::kGemmReduceScatter || shots == PacketShots::kTwo, rows);
  if (!fused.gather) {
    Buffer zeros(x_all.bytes()), rest(out.bytes());
    set_bytes(zeros, 0);
    Tensor to = own_out();
    to.data = rest.data();
    sum(fused, zeros.data(), to, stream);
    run(fused, stream);
    must(cudaStreamSynchronize(stream));
    return error_of_sum(out.data(), rest.data(), rows);
  }
  Buffer gathered(p.m * p.k * 2);
  set_bytes(gathered, 0xff);
  Linear const l = linear();
  fused.gather->run(p.m, own_x(), std::span(&l, 1), matrix(gathered.data(), p.dtype, p.m, p.k), stream);
  must(cudaStreamSynchronize(stream));
  double const first = error_of(p, gathered.data(), weight(), l.bias.data, out.data(), rows);
  set_bytes(out, 0xff);
  run(fused, stream);  // as it is timed: own rows may be read elsewhere
  must(cudaStreamSynchronize(stream));
  double const timed = error_of(p, gathered.data(), weight(), l.bias.data, out.data(), rows);
  if (std::isnan(first) || std::isnan(timed)) return NAN;
  bool const kept = same(static_cast<char*>(gathered.data()) + own.begin * p.k * 2, own_x());
  return kept ? std::max(first, timed) : INFINITY;
}

// A mirror's peers send in packets what they get: our own partial sums.
double Subject::error_of_packets(Fused const& fused, bool of_own_rows, int rows) {
  run(fused, capture_stream());
  must(cudaStreamSynchronize(capture_stream()));
  Part const checked = of_own_rows ? own : Part{0, p.m};
  GemmProblem mine = p;
  mine.m = checked.size;
  auto first = [&](Tensor const& t) {
    return static_cast<char*>(t.data) + (t.rows == p.m ? checked.begin * t.columns * 2 : 0);
  };
  Buffer others(rows * p.columns() * static_cast<int64_t>(sizeof(double)));
  set_bytes(others, 0);
  for (int r = 1; r < p.tp; ++r)
    add_products(mine, first(all_x()), weight(), rows, static_cast<double*>(others.data()));
  return error_of(mine, first(all_x()), weight(), nullptr, first(own_out()), rows, nullptr,
                  static_cast<double const*>(others.data()));
}

double Subject::error_of_gathered(void const* x, void const* result, int rows) const {
  GemmProblem bare = p;
  bare.epilogue = "none";
  return error_of(bare, x, weight(), nullptr, result, rows);
}

double Subject::error_of_sum(void const* result, void const* rest, int rows) const {
  GemmProblem mine = p;
  if (p.op == "gemm_rs") mine.m = own.size;
  if (mine.m == 0) return 0;  // fewer rows than ranks: nothing is ours
  return error_of(mine, p.op == "gemm_rs" ? own_x().data : x_all.data(), weight(), nullptr, result, rows, rest);
}

}  // namespace flux::bench
