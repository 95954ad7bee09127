#include "op/scenario.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/host/element.h"
#include "flux/op.h"
#include "io/owned_tensor.h"

namespace flux::test {
namespace {

// Small integers that every rank can make for itself. Bounded so that the longest sum stays exact in bf16's slots.
struct Numbers {
  uint64_t seed;
  double at(int64_t i, int64_t j) const {
    uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(i) * 0xbf58476d1ce4e5b9ull +
                 static_cast<uint64_t>(j) * 0x94d049bb133111ebull;
    x ^= x >> 31, x *= 0xd6e8feb86659fd93ull, x ^= x >> 29;
    return static_cast<double>(x % 3) - 1.0;
  }
};

void set(Tensor const& t, int64_t i, int64_t j, double value) {
  host::narrow(&value, static_cast<std::byte*>(t.row(i)) + j * size_of(t.dtype), t.dtype, 1);
}
double get(Tensor const& t, int64_t i, int64_t j) {
  double value = 0;
  host::widen(static_cast<std::byte const*>(t.row(i)) + j * size_of(t.dtype), t.dtype, &value, 1);
  return value;
}

double rounded(double value, DType dtype) {
  std::byte bytes[8];
  host::narrow(&value, bytes, dtype, 1);
  host::widen(bytes, dtype, &value, 1);
  return value;
}

template <class F>
OwnedTensor filled(DType dtype, int64_t rows, int64_t columns, F&& value) {
  OwnedTensor t(dtype, rows, columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) set(t.view(), i, j, value(i, j));
  return t;
}

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone: return x;
    case Activation::kRelu: return std::max(x, 0.0);
    case Activation::kGelu: return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::kGeluTanh: return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kQuickGelu: return x / (1 + std::exp(-1.702 * x));
    case Activation::kSilu: return x / (1 + std::exp(-x));
  }
  return x;
}

// One call of a scenario: the inputs of this rank and what it must end with.
struct Trial {
  Scenario const& s;
  int rank;
  Numbers x{0}, w{0}, b{0}, r{0};
  Trial(Scenario const& scenario, int rank, int call) : s(scenario), rank(rank) {
    uint64_t const base = 17 * call;
    x.seed = base + 1, w.seed = base + 2, b.seed = base + 3, r.seed = base + 4;
  }
  /// As the scales make it, a row's and a column's.
  double product(int64_t i, int64_t j) const {
    return product(i, j, 0, s.k) * (s.scaled ? scale_of(i) * scale_of(j) : 1);
  }
  static double scale_of(int64_t i) { return i % 3 == 0 ? 2 : i % 3 == 1 ? 0.5 : 1; }
  double product(int64_t i, int64_t j, int64_t first, int64_t count) const {
    double sum = 0;
    for (int64_t l = first; l < first + count; ++l) sum += x.at(i, l) * w.at(j, l);
    return sum;
  }
  /// What rank p's part of k is multiplied by: far apart from rank to rank where the order of the sum shall show.
  double scale(int p) const { return s.ordered && p % 2 == 1 ? 1 << 24 : 1; }
  /// The sum of all ranks' partials of row i. Ordered: in fp32, by rank, or as the relay passes them on to `owner`;
  /// over several nodes those of the owner's, then the sum of each other node, which travels as partials do.
  double sum(int64_t i, int64_t j, int owner) const {
    if (!s.ordered) return product(i, j);
    int const of_node = s.ranks / s.nodes, first = s.plan.route == RouteKind::kRing ? owner + 1 : 0;
    auto of = [&](int node) {
      float total = 0;
      for (int step = 0; step < of_node; ++step) {
        int const p = node * of_node + (first + step) % of_node;
        Part const depth = part_of_columns(s.k, p, s.ranks, k_unit(s.dtype));
        total += static_cast<float>(product(i, j, depth.begin, depth.size) * scale(p));
      }
      return total;
    };
    float total = of(owner / of_node);
    for (int node = 0; node < s.nodes; ++node)
      if (node != owner / of_node) total += static_cast<float>(rounded(of(node), result_of(s.dtype)));
    return total;
  }
};

/// Scales of m rows and of columns that `column` says the global number of.
template <class Column>
std::pair<OwnedTensor, OwnedTensor> scales_of(int64_t m, int64_t n, Column&& column) {
  return {filled(DType::kF32, 1, m, [](int64_t, int64_t i) { return Trial::scale_of(i); }),
          filled(DType::kF32, 1, n, [&](int64_t, int64_t j) { return Trial::scale_of(column(j)); })};
}

struct Check {
  std::string failure;
  double tolerance;
  void equal(std::string_view what, Tensor const& t, int64_t i, int64_t j, double want) {
    double const got = get(t, i, j);
    if (tolerance == 0) want = rounded(want, t.dtype);
    bool const same = tolerance == 0 ? got == want : std::abs(got - want) <= tolerance * (1 + std::abs(want));
    if (!same && failure.empty()) failure = fmt::format("{}[{}, {}] is {} and should be {}", what, i, j, got, want);
  }
};

void poison(Tensor const& t) {
  for (int64_t i = 0; i < t.rows; ++i) std::memset(t.row(i), 0xff, t.columns * size_of(t.dtype));
}

std::string run_ag(World& world, Scenario const& s, AllGatherGemm& op, int call, Memory& memory) {
  int const rank = world.rank();
  Trial const trial(s, rank, call);
  // Uneven columns: gate and up are divided alike, so the global n counts both.
  int64_t const width = s.gated ? s.n / 2 : s.n;
  Part const rows = part_of_rows(s.m, rank, s.ranks), columns = part_of_columns(width, rank, s.ranks);
  int64_t const n_r = columns.size * (s.gated ? 2 : 1);
  auto global_column = [&](int64_t j) {
    return j < columns.size ? columns.begin + j : width + columns.begin + j - columns.size;
  };
  auto x = filled(s.dtype, rows.size, s.k, [&](int64_t i, int64_t j) { return trial.x.at(rows.begin + i, j); });
  bool const out_in = s.layout == WeightLayout::kOutIn;
  auto w = out_in ? filled(s.dtype, n_r, s.k, [&](int64_t i, int64_t j) { return trial.w.at(global_column(i), j); })
                  : filled(s.dtype, s.k, n_r, [&](int64_t i, int64_t j) { return trial.w.at(global_column(j), i); });
  DType const result = result_of(s.dtype);
  auto bias = filled(result, 1, n_r, [&](int64_t, int64_t j) { return trial.b.at(0, global_column(j)); });
  auto const [row_scales, column_scales] = scales_of(s.m, n_r, global_column);
  OwnedTensor out(result, s.m, columns.size), gathered(s.dtype, s.m, s.k);
  poison(out), poison(gathered);
  Linear linear;
  Tensor const out_there = memory.place(out), gathered_there = s.gathered ? memory.place(gathered) : Tensor{};
  linear.weight = memory.place(w), linear.out = out_there, linear.layout = s.layout, linear.activation = s.activation,
  linear.gated = s.gated;
  if (s.bias) linear.bias = memory.place(bias);
  if (s.scaled) linear.scales = {memory.place(row_scales), memory.place(column_scales)};
  op.run(s.m, memory.place(x), std::span(&linear, 1), gathered_there, memory.stream());
  memory.fetch(out_there, out), memory.fetch(gathered_there, gathered);
  world.check();
  Check check{{},
              s.activation == Activation::kNone || s.activation == Activation::kRelu ? 0.0
              : s.dtype == DType::kF32                                               ? 1e-5
              : s.dtype == DType::kF64                                               ? 1e-12
                                                                                     : 1e-2};
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < columns.size; ++j) {
      auto value = [&](int64_t column) { return trial.product(i, column) + (s.bias ? trial.b.at(0, column) : 0.0); };
      double y = activated(s.activation, value(columns.begin + j));
      if (s.gated) y *= value(width + columns.begin + j);
      check.equal("y", out, i, j, y);
    }
    for (int64_t j = 0; s.gathered && j < s.k; ++j) check.equal("gathered", gathered, i, j, trial.x.at(i, j));
  }
  return check.failure;
}

template <class Operator>
std::string run_sums(World& world, Scenario const& s, Operator& op, int call, Memory& memory) {
  int const rank = world.rank();
  Trial const trial(s, rank, call);
  Part const depth = part_of_columns(s.k, rank, s.ranks, k_unit(s.dtype));
  Part const rows = s.op == Op::kGemmAllReduce ? Part{0, s.m} : part_of_rows(s.m, rank, s.ranks);
  auto x = filled(s.dtype, s.m, depth.size,
                  [&](int64_t i, int64_t j) { return trial.x.at(i, depth.begin + j) * trial.scale(rank); });
  bool const out_in = s.layout == WeightLayout::kOutIn;
  auto w = out_in
               ? filled(s.dtype, s.n, depth.size, [&](int64_t i, int64_t j) { return trial.w.at(i, depth.begin + j); })
               : filled(s.dtype, depth.size, s.n, [&](int64_t i, int64_t j) { return trial.w.at(j, depth.begin + i); });
  DType const result = result_of(s.dtype);
  auto bias = filled(result, 1, s.n, [&](int64_t, int64_t j) { return trial.b.at(0, j); });
  auto const [row_scales, column_scales] = scales_of(s.m, s.n, [](int64_t j) { return j; });
  auto residual = filled(result, rows.size, s.n, [&](int64_t i, int64_t j) { return trial.r.at(rows.begin + i, j); });
  auto gamma = filled(result, 1, s.n, [&](int64_t, int64_t j) { return trial.b.at(1, j); });
  OwnedTensor out(result, rows.size, s.n), normed(result, rows.size, s.n);
  poison(out), poison(normed);
  SumEpilogue epilogue;
  Tensor const out_there = memory.place(out), normed_there = s.norm ? memory.place(normed) : Tensor{};
  if (s.bias) epilogue.bias = memory.place(bias);
  if (s.scaled) epilogue.scales = {memory.place(row_scales), memory.place(column_scales)};
  if (s.residual) epilogue.residual = memory.place(residual);
  if (s.norm) epilogue.norm_weight = memory.place(gamma), epilogue.normed = normed_there;
  op.run(s.m, memory.place(x), memory.place(w), s.layout, out_there, epilogue, memory.stream());
  memory.fetch(out_there, out), memory.fetch(normed_there, normed);
  world.check();
  Check check{{}, 0.0}, norm_check{{}, s.dtype == DType::kF32 ? 1e-5 : s.dtype == DType::kF64 ? 1e-10 : 1e-2};
  for (int64_t i = 0; i < rows.size; ++i) {
    double squares = 0;
    int64_t const row = rows.begin + i;
    int owner = 0;
    while (part_of_rows(s.m, owner, s.ranks).begin + part_of_rows(s.m, owner, s.ranks).size <= row) ++owner;
    auto value = [&](int64_t j) {
      return trial.sum(row, j, owner) + (s.bias ? trial.b.at(0, j) : 0.0) + (s.residual ? trial.r.at(row, j) : 0.0);
    };
    for (int64_t j = 0; j < s.n; ++j) {
      double const y = value(j);
      squares += y * y;
      check.equal("y", out, i, j, y);
    }
    double const scale = 1.0 / std::sqrt(squares / static_cast<double>(s.n) + 1e-5);
    for (int64_t j = 0; s.norm && j < s.n; ++j)
      norm_check.equal("normed", normed, i, j, value(j) * scale * trial.b.at(1, j));
  }
  return check.failure + norm_check.failure;
}

}  // namespace

std::string Scenario::describe() const {
  return fmt::format("{} m={} n={} k={} ranks={}{} {} {}{}{}{}{}{}{}{}{}{}{} calls={} | {}", name(op), m, n, k, ranks,
                     nodes > 1 ? fmt::format(" on {} nodes", nodes) : "", name(dtype), name(layout),
                     activation == Activation::kNone ? "" : fmt::format(" {}", name(activation)), gated ? " gated" : "",
                     bias ? " bias" : "", residual ? " residual" : "", norm ? " norm" : "", gathered ? " gathered" : "",
                     scaled ? " scaled" : "", ordered ? " ordered" : "", slow < 0 ? "" : fmt::format(" slow={}", slow),
                     varied ? " varied" : "", calls, to_string(plan));
}

std::string run_scenario(World& world, Scenario const& all_calls, Memory& memory) {
  Scenario s = all_calls;
  auto repeat = [&](auto&& once) {
    for (int call = 0; call < s.calls; ++call) {
      if (s.varied) s.m = (all_calls.m - call * 5 % (all_calls.m + 1));
      if (world.rank() == s.slow) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::string failure = once(call);
      if (!failure.empty()) return fmt::format("rank {} call {}: {}: {}", world.rank(), call, s.describe(), failure);
    }
    return std::string();
  };
  if (s.op == Op::kAllGatherGemm) {
    AllGatherGemm op(world, {s.m, s.k, s.dtype}, s.plan);
    return repeat([&](int call) { return run_ag(world, s, op, call, memory); });
  }
  if (s.op == Op::kGemmReduceScatter) {
    GemmReduceScatter op(world, {s.m, s.n, s.dtype, s.k}, s.plan);
    return repeat([&](int call) { return run_sums(world, s, op, call, memory); });
  }
  GemmAllReduce op(world, {s.m, s.n, s.dtype, s.k}, s.plan);
  return repeat([&](int call) { return run_sums(world, s, op, call, memory); });
}

std::string run_on_threads(Scenario const& scenario, WorldOptions const& options) {
  std::mutex mutex;
  std::string failures;
  WorldOptions of_nodes = options;
  of_nodes.nodes = scenario.nodes;
  run_threads(scenario.ranks, of_nodes, [&](World& world) {
    std::string const failure = run_scenario(world, scenario);
    std::lock_guard lock(mutex);
    if (!failure.empty()) failures += failure + "\n";
  });
  return failures;
}

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> list;
  auto plan = [](std::string_view line) { return parse_plan(line, parse_plan("tile=16x24 band=2 workers=2")); };
  struct Size {
    int64_t m, n, k;
    int ranks;
  };
  // Even, ragged everywhere, fewer rows than ranks, no rows, one rank, many ranks, one row, k shorter than a unit a
  // rank.
  Size const sizes[] = {{64, 48, 32, 4}, {67, 53, 29, 3}, {3, 40, 24, 5}, {0, 16, 16, 3},    {33, 25, 17, 1},
                        {61, 70, 90, 8}, {1, 17, 130, 2}, {40, 33, 5, 4}, {129, 36, 24, 16}, {47, 9, 64, 7}};
  for (Size const& z : sizes) {
    Scenario s;
    s.m = z.m, s.n = z.n, s.k = z.k, s.ranks = z.ranks, s.calls = 3;
    auto add = [&](Op op, std::string_view line) {
      s.op = op, s.plan = plan(line);
      list.push_back(s);
    };
    for (auto line : {"", "comm_rows=shard", "transport=pull", "transport=remote", "path=ring", "comm_rows=5",
                      "transport=pull comm_rows=7 k_slices=2", "path=ring comm_rows=4 k_slices=3", "fused=no",
                      "order=naive", "workers=1 tile=64x64", "buffers=1"})
      add(Op::kAllGatherGemm, line);
    for (auto line : {"", "route=push", "route=stage", "route=sum", "route=ring", "fused=no", "order=naive",
                      "slots=fp32", "workers=1 tile=64x64", "buffers=1"})
      add(Op::kGemmReduceScatter, line);
    for (auto line : {"", "route=push shots=one", "route=push", "route=stage", "route=ring", "route=sum", "fused=no"})
      add(Op::kGemmAllReduce, line);
  }
  // The promised order of sums, and buffers that some ranks could reuse long before a slow one has read them: with
  // fewer rows than ranks nothing but credits holds the others back.
  for (int ranks : {2, 3, 5}) {
    Scenario s;
    s.m = 37, s.n = 30, s.k = 8 * ranks + 5, s.ranks = ranks, s.ordered = true, s.calls = 2;
    for (Op op : {Op::kGemmReduceScatter, Op::kGemmAllReduce})
      for (auto line : {"", "route=stage", "route=ring", "fused=no", "shots=one", "route=push shots=one"}) {
        s.op = op, s.plan = plan(line);
        list.push_back(s);
      }
  }
  auto add_both = [&](Scenario s) {
    s.m = 1, s.varied = false, list.push_back(s);
    s.m = 7, s.varied = true, list.push_back(s);
  };
  for (int slow = 0; slow < 3; ++slow) {
    Scenario s;
    s.n = 40, s.k = 24, s.ranks = 3, s.slow = slow, s.calls = 12;
    for (auto line : {"", "comm_rows=shard", "transport=pull", "transport=remote", "path=ring", "buffers=1"}) {
      s.plan = plan(line);
      add_both(s);
    }
    for (Op op : {Op::kGemmReduceScatter, Op::kGemmAllReduce})
      for (auto line :
           {"", "route=stage", "route=sum", "route=ring", "shots=one", "route=push shots=one", "shots=two buffers=1"}) {
        s.op = op, s.plan = plan(line);
        add_both(s);
      }
  }
  for (DType dtype : {DType::kBF16, DType::kF16, DType::kF64, DType::kF32})
    for (WeightLayout layout : {WeightLayout::kOutIn, WeightLayout::kInOut})
      for (Op op : {Op::kAllGatherGemm, Op::kGemmReduceScatter, Op::kGemmAllReduce}) {
        Scenario s;
        s.op = op, s.m = 37, s.n = 58, s.k = 44, s.ranks = 3, s.dtype = dtype, s.layout = layout, s.plan = plan("");
        s.calls = 2, s.bias = true, s.gathered = true, s.residual = s.norm = op != Op::kAllGatherGemm;
        list.push_back(s);
        s.plan = plan(op == Op::kAllGatherGemm ? "path=ring" : "route=ring shots=one");
        list.push_back(s);
        s.plan = plan("route=sum"), s.norm = s.residual = false;
        if (op != Op::kAllGatherGemm) list.push_back(s);
      }
  for (Activation activation :
       {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh, Activation::kQuickGelu, Activation::kSilu})
    for (bool gated : {false, true})
      for (DType dtype : {DType::kF32, DType::kBF16}) {
        Scenario s;
        s.m = 21, s.n = 60, s.k = 40, s.ranks = 2, s.plan = plan(""), s.dtype = dtype;
        s.activation = activation, s.gated = gated, s.bias = gated;
        s.layout = gated && dtype == DType::kF32 ? WeightLayout::kInOut : WeightLayout::kOutIn;
        list.push_back(s);
      }
  // Operands of one byte: results of two, k in whole units of 16 on every rank; each size of one type with scales, of
  // the other without.
  bool scaled = false;
  for (auto [m, n, k, ranks] : {std::array{37, 58, 144, 3}, {67, 48, 64, 2}, {3, 40, 80, 5}, {1, 17, 32, 4}}) {
    scaled = !scaled;
    for (DType dtype : {DType::kI8, DType::kF8}) {
      scaled = !scaled;
      Scenario s;
      s.m = m, s.n = n, s.k = k, s.ranks = ranks, s.dtype = dtype, s.scaled = scaled, s.bias = scaled, s.calls = 2;
      for (auto line : {"", "transport=remote", "comm_rows=5 k_slices=2", "fused=no"})
        s.plan = plan(line), s.gathered = scaled, list.push_back(s);
      s.activation = Activation::kRelu, s.gated = true, s.plan = plan("path=ring"), list.push_back(s);
      s.activation = Activation::kNone, s.gated = s.gathered = false;
      for (Op op : {Op::kGemmReduceScatter, Op::kGemmAllReduce})
        for (auto line : {"", "route=stage", "route=sum", "route=ring", "shots=one", "slots=fp32", "fused=no"}) {
          s.op = op, s.plan = plan(line), s.residual = s.norm = scaled && s.plan.route != RouteKind::kSum;
          list.push_back(s);
        }
    }
  }
  return list;
}

std::vector<Scenario> scenarios_of(int nodes) {
  auto served = [](Plan const& p) {
    return p.transport == Transport::kPush && p.path == Path::kDirect && p.route != RouteKind::kSum &&
           p.route != RouteKind::kRing && p.shots != Shots::kOneShot;
  };
  std::vector<Scenario> list;
  for (Scenario s : all_scenarios()) {
    s.nodes = nodes, s.ranks = (s.ranks + nodes - 1) / nodes * nodes;
    if (served(s.plan) && s.ranks <= 16) list.push_back(s);
  }
  return list;
}

}  // namespace flux::test
