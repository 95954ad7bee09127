#include "op/trials.h"

#include <algorithm>
#include <random>

#include "op/tuned_plans.h"
#include "world/team.h"

namespace flux {

struct Trials::Operators {
  std::unique_ptr<AllGatherGemm> gather;
  std::unique_ptr<GemmReduceScatter> scatter;
  std::unique_ptr<GemmAllReduce> reduce;
};

Trials::Trials(World& world, Problem const& p) : world_(world), problem_(p) {
  int const rank = world.rank(), ranks = world.size();
  bool const gathers = p.gathers(), out_in = p.layout == WeightLayout::kOutIn;
  int64_t const rows = part_of_rows(p.m, rank, ranks).size, width = p.gated ? p.n / 2 : p.n;
  int64_t const n = gathers ? part_of_columns(width, rank, ranks).size : p.n,
                k = gathers ? p.k : part_of_columns(p.k, rank, ranks, k_unit(p.dtype)).size,
                wide = n * (p.gated ? 2 : 1);
  x_ = filled(gathers ? rows : p.m, k, p.dtype);
  weight_ = out_in ? filled(wide, k, p.dtype) : filled(k, wide, p.dtype);
  out_ = filled(p.op == Op::kGemmReduceScatter ? rows : p.m, n, result_of(p.dtype));
}
Trials::~Trials() = default;

Tensor Trials::filled(int64_t rows, int64_t columns, DType dtype) {
  Gpu* const gpu = world_.team().gpu();
  int64_t const bytes = std::max<int64_t>(rows * columns * size_of(dtype), 1);
  auto const memory =
      gpu ? gpu->allocate(bytes)
          : std::shared_ptr<std::byte>(new std::byte[static_cast<size_t>(bytes)], std::default_delete<std::byte[]>());
  // Numbers of ordinary size: a GPU that multiplies zeros draws less power than it will, and runs faster.
  constexpr int64_t kPattern = 1 << 20;
  std::vector<std::byte> pattern(static_cast<size_t>(std::min(bytes, kPattern)));
  std::mt19937 random(1);
  for (std::byte& byte : pattern) byte = static_cast<std::byte>(random() & 0x3b);  // no large exponent
  for (int64_t at = 0; at < bytes; at += kPattern) {
    int64_t const count = std::min(kPattern, bytes - at);
    if (gpu)
      gpu->copy(memory.get() + at, pattern.data(), count);
    else
      std::copy_n(pattern.data(), count, memory.get() + at);
  }
  memory_.push_back(memory);
  return matrix(memory.get(), dtype, rows, columns);
}

// One that is large enough for all plans so far; operators keep the one that they were made with.
Workspace const* Trials::workspace(MemoryNeed const& need) {
  bool const fits = workspace_ && need.buffers == need_.buffers && need.buffer <= need_.buffer &&
                    need.scratch <= need_.scratch && need.packets <= need_.packets;
  if (fits) return workspace_.get();
  need_.cover(need);
  workspace_ = std::make_unique<Workspace>(world_, need_);
  return workspace_.get();
}

bool Trials::has(Plan const& given) {
  auto const [place, is_new] = made_.try_emplace(to_string(given));
  if (!is_new) return place->second != nullptr;
  Plan plan = given;
  if (world_.kind() == "mirror") plan.buffers = 1;  // each lies there once for every rank
  struct Making {                                   // an open plan is not to be looked up
    bool& tuning;
    explicit Making(PlanTable& table) : tuning(table.tuning) { tuning = true; }
    ~Making() { tuning = false; }
  } const making(plan_table(world_.team()));
  auto made = std::make_unique<Operators>();
  Problem const& p = problem_;
  AllGatherGemm::Shape const rows{p.m, p.k, p.dtype, p.n, p.layout, p.gated};
  GemmReduceScatter::Shape const sums{p.m, p.n, p.dtype, p.k, p.layout};
  try {
    auto make = [&]<class Operator>(std::unique_ptr<Operator>& to, auto const& shape) {
      to = std::make_unique<Operator>(world_, shape, plan, workspace(Operator::memory(world_, shape, plan)));
    };
    switch (p.op) {
      case Op::kAllGatherGemm: make(made->gather, rows); break;
      case Op::kGemmReduceScatter: make(made->scatter, sums); break;
      case Op::kGemmAllReduce: make(made->reduce, sums); break;
    }
    place->second = std::move(made);
  } catch (Error const& error) {  // found by every rank, before anything was shared
    if (error.kind() == ErrorKind::kTimeout || error.kind() == ErrorKind::kInternal) throw;
  }
  return place->second != nullptr;
}

void Trials::run(Plan const& plan, Stream stream) {
  Problem const& p = problem_;
  Operators& o = *made_.at(to_string(plan));
  if (o.scatter) return o.scatter->run(p.m, x_, weight_, p.layout, out_, {}, stream);
  if (o.reduce) return o.reduce->run(p.m, x_, weight_, p.layout, out_, {}, stream);
  Linear linear;
  linear.weight = weight_, linear.layout = p.layout, linear.out = out_, linear.gated = p.gated;
  o.gather->run(p.m, x_, linear, stream);
}

}  // namespace flux
