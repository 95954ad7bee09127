// The doors of flux/op.h: arguments are checked, then handed to the operator of the host or of the GPU.
#include "op/checks.h"
#include "op/gather.h"
#include "op/operators.h"
#include "op/partial_sums.h"
#include "op/tuned_plans.h"

namespace flux {
namespace {

#if FLUX_WITH_CUDA
constexpr auto ag_gemm_on_gpu = gpu_ag_gemm;
constexpr auto gemm_rs_on_gpu = gpu_gemm_rs;
constexpr auto gemm_ar_on_gpu = gpu_gemm_ar;
constexpr auto ag_gemm_memory_on_gpu = gpu_ag_gemm_memory;
constexpr auto gemm_rs_memory_on_gpu = gpu_gemm_rs_memory;
constexpr auto gemm_ar_memory_on_gpu = gpu_gemm_ar_memory;
#else  // no world of this build has a GPU
constexpr auto ag_gemm_on_gpu = host_ag_gemm;
constexpr auto gemm_rs_on_gpu = host_gemm_rs;
constexpr auto gemm_ar_on_gpu = host_gemm_ar;
constexpr auto ag_gemm_memory_on_gpu = host_ag_gemm_memory;
constexpr auto gemm_rs_memory_on_gpu = host_gemm_rs_memory;
constexpr auto gemm_ar_memory_on_gpu = host_gemm_ar_memory;
#endif

void check_gather_plan(AllGatherGemm::Shape const& shape, Plan const& plan) {
  require_shape(shape.max_m, "k", shape.k, plan);
  require(plan.path == Path::kDirect || plan.transport == Transport::kPush,
          "transport={} goes with path=direct; a ring pushes", plan.transport == Transport::kPull ? "pull" : "remote");
}

void check_gather_call(GatherOperator const& o, int64_t m, Tensor const& x, std::span<Linear const> linears,
                       Tensor const& gathered) {
  DType const dtype = o.shape.dtype, result = result_of(dtype);
  require(m >= 0 && m <= o.shape.max_m, "m is {}; this operator was made for 0 to {} rows", m, o.shape.max_m);
  require_matrix("x", x, dtype, part_of_rows(m, o.team.rank(), o.team.size()).size, o.shape.k);
  require_optional("the gathered output", gathered, dtype, m, o.shape.k);
  for (Linear const& l : linears) {
    bool const out_in = l.layout == WeightLayout::kOutIn;
    int64_t const n = out_in ? l.weight.rows : l.weight.columns, k = o.shape.k;
    require_matrix("the weight", l.weight, dtype, out_in ? n : k, out_in ? k : n);
    require_of_one_byte(dtype, l.layout, k);
    require_optional("the bias", l.bias, result, 1, n);
    bool const halves = l.gated && !l.up;
    require(!halves || n % 2 == 0, "a gated weight has {} output columns; gate and up need an even number", n);
    require_matrix("the output", l.out, result, m, halves ? n / 2 : n);
    require(l.gated || (!l.up && !l.up_bias), "a second weight is given, but the layer is not gated");
    require(!l.up_bias || l.up, "a second bias is given without a second weight");
    require(!l.up || !l.bias == !l.up_bias, "gate and up either both have a bias or neither");
    if (l.up) require_matrix("the second weight", l.up, dtype, out_in ? n : k, out_in ? k : n);
    require_optional("the second bias", l.up_bias, result, 1, n);
    require_scales(l.scales, dtype, m, n);
    require(!l.up_scale || l.up, "scales of a second weight are given without a second weight");
    require(!l.up || !l.scales.columns == !l.up_scale, "gate and up either both have scales of columns or neither");
    require_scales({{}, l.up_scale}, dtype, m, n);
  }
}

void check_sum_call(SumOperator const& o, int64_t rows, int64_t m, Tensor const& x, Tensor const& weight,
                    WeightLayout layout, Tensor const& out, SumEpilogue const& epilogue) {
  DType const dtype = o.shape.dtype;
  require_row_parallel(m, o.shape.max_m, o.shape.n, dtype, x, weight, layout);
  require_summed(rows, o.shape.n, result_of(dtype), out, epilogue);
  require_scales(epilogue.scales, dtype, m, o.shape.n);
}

/// What can be done over several nodes.
void check_nodes(World const& world, Plan const& plan) {
  if (world.nodes() == 1) return;
  require(plan.transport == Transport::kPush && plan.path == Path::kDirect,
          "the world spans {} nodes, between which rows are pushed; give transport=push and path=direct, or neither",
          world.nodes());
  require(plan.route != RouteKind::kSum && plan.route != RouteKind::kRing,
          "the world spans {} nodes, each of which sums before it sends; give route=push, route=stage or neither",
          world.nodes());
  require(plan.shots != Shots::kOneShot || !plan.fused,
          "the world spans {} nodes and shots=one sends every partial to every rank; give shots=two or leave it out",
          world.nodes());
}

/// Before anything is allocated. Collective.
std::shared_ptr<Buffers> admitted(World& world, std::string_view op, int64_t max_m, MemoryNeed const& need,
                                  Workspace const* workspace) {
  int64_t const more = workspace ? need.own : need.total();
  require_room(world.team(), fmt::format("{} of up to {} rows", op, max_m), more);
  return workspace ? workspace->buffers() : nullptr;
}

/// Ranks that share a GPU: none calls an operator, whose kernels wait for others, before all have loaded their kernels
/// and allocated, which may wait for all kernels of the GPU. Collective.
void all_made(World& world) {
  if (Gpu const* gpu = world.team().gpu(); gpu && gpu->shared()) world.barrier();
}

/// Of exactly this plan.
MemoryNeed need_of(World& world, AllGatherGemm::Shape const& shape, Plan const& plan) {
  return (world.on_gpu() ? ag_gemm_memory_on_gpu : host_ag_gemm_memory)(world.team(), shape, plan);
}
MemoryNeed need_of(World& world, Op op, GemmReduceScatter::Shape const& shape, Plan const& plan) {
  if (op == Op::kGemmReduceScatter)
    return (world.on_gpu() ? gemm_rs_memory_on_gpu : host_gemm_rs_memory)(world.team(), shape, plan);
  return (world.on_gpu() ? gemm_ar_memory_on_gpu : host_gemm_ar_memory)(world.team(), shape, plan);
}

}  // namespace

// ---- AG+GEMM ----

AllGatherGemm::AllGatherGemm(World& world, Shape const& shape, Plan const& plan, Workspace const* workspace) {
  check_gather_plan(shape, plan);
  check_nodes(world, plan);
  plan_ = plan_for(world, problem_of(shape, world.size()), plan, workspace == nullptr);
  auto shared = admitted(world, "ag_gemm", shape.max_m, need_of(world, shape, plan_), workspace);
  operator_ = (world.on_gpu() ? ag_gemm_on_gpu : host_ag_gemm)(world.team(), shape, plan_, std::move(shared));
  all_made(world);
}
AllGatherGemm::~AllGatherGemm() = default;

MemoryNeed AllGatherGemm::memory(World& world, Shape const& shape, Plan const& given) {
  check_gather_plan(shape, given);
  return need_of(world, shape, plan_table(world.team()).plan(problem_of(shape, world.size()), given));
}

int64_t AllGatherGemm::shared_bytes(Shape const& shape, int ranks, Plan const& plan) {
  check_gather_plan(shape, plan);
  return Channel::bytes(most_arrival_words(shape.max_m, shape.k, ranks, 8, plan) + ranks,
                        shape.max_m * shape.k * size_of(shape.dtype), plan);
}

void AllGatherGemm::run(int64_t m, Tensor const& x, std::span<Linear const> linears, Tensor const& gathered,
                        Stream stream) {
  check_gather_call(*operator_, m, x, linears, gathered);
  operator_->run(m, x, linears, gathered, stream);
}
void AllGatherGemm::record(Timeline* timeline) { operator_->record(timeline); }

// ---- GEMM+RS ----

GemmReduceScatter::GemmReduceScatter(World& world, Shape const& shape, Plan const& plan, Workspace const* workspace) {
  require_shape(shape.max_m, "n", shape.n, plan);
  check_nodes(world, plan);
  plan_ = plan_for(world, problem_of(Op::kGemmReduceScatter, shape, world.size()), plan, workspace == nullptr);
  auto shared =
      admitted(world, "gemm_rs", shape.max_m, need_of(world, Op::kGemmReduceScatter, shape, plan_), workspace);
  operator_ = (world.on_gpu() ? gemm_rs_on_gpu : host_gemm_rs)(world.team(), shape, plan_, std::move(shared));
  all_made(world);
}
GemmReduceScatter::~GemmReduceScatter() = default;

MemoryNeed GemmReduceScatter::memory(World& world, Shape const& shape, Plan const& given) {
  require_shape(shape.max_m, "n", shape.n, given);
  Problem const problem = problem_of(Op::kGemmReduceScatter, shape, world.size());
  return need_of(world, Op::kGemmReduceScatter, shape, plan_table(world.team()).plan(problem, given));
}

int64_t GemmReduceScatter::shared_bytes(Shape const& shape, int ranks, Plan const& plan) {
  require_shape(shape.max_m, "n", shape.n, plan);
  auto const way = PartialSums::way_of(plan);
  return Channel::bytes(PartialSums::words(shape.max_m, ranks, plan, way),
                        PartialSums::data_bytes(shape.max_m, shape.n, shape.dtype, ranks, plan, way), plan);
}

void GemmReduceScatter::run(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
                            SumEpilogue const& epilogue, Stream stream) {
  Team& team = operator_->team;
  int64_t const rows = part_of_rows(m, team.rank(), team.size()).size;
  check_sum_call(*operator_, rows, m, x, weight, layout, out, epilogue);
  operator_->run(m, x, weight, layout, out, epilogue, stream);
}
void GemmReduceScatter::record(Timeline* timeline) { operator_->record(timeline); }

// ---- GEMM+AR ----

GemmAllReduce::GemmAllReduce(World& world, Shape const& shape, Plan const& plan, Workspace const* workspace) {
  require_shape(shape.max_m, "n", shape.n, plan);
  check_nodes(world, plan);
  plan_ = plan_for(world, problem_of(Op::kGemmAllReduce, shape, world.size()), plan, workspace == nullptr);
  auto shared = admitted(world, "gemm_ar", shape.max_m, need_of(world, Op::kGemmAllReduce, shape, plan_), workspace);
  operator_ = (world.on_gpu() ? gemm_ar_on_gpu : host_gemm_ar)(world.team(), shape, plan_, std::move(shared));
  all_made(world);
}
GemmAllReduce::~GemmAllReduce() = default;

MemoryNeed GemmAllReduce::memory(World& world, Shape const& shape, Plan const& given) {
  require_shape(shape.max_m, "n", shape.n, given);
  Problem const problem = problem_of(Op::kGemmAllReduce, shape, world.size());
  return need_of(world, Op::kGemmAllReduce, shape, plan_table(world.team()).plan(problem, given));
}

int64_t GemmAllReduce::shared_bytes(Shape const& shape, int ranks, Plan const& plan) {
  require_shape(shape.max_m, "n", shape.n, plan);
  auto const way = PartialSums::way_of_all(plan);
  return Channel::bytes(2 * PartialSums::words(shape.max_m, ranks, plan, way),
                        PartialSums::data_bytes(shape.max_m, shape.n, shape.dtype, ranks, plan, way) +
                            shape.max_m * shape.n * size_of(result_of(shape.dtype)),
                        plan);
}

void GemmAllReduce::run(int64_t m, Tensor const& x, Tensor const& weight, WeightLayout layout, Tensor const& out,
                        SumEpilogue const& epilogue, Stream stream) {
  check_sum_call(*operator_, m, m, x, weight, layout, out, epilogue);
  operator_->run(m, x, weight, layout, out, epilogue, stream);
}
void GemmAllReduce::record(Timeline* timeline) { operator_->record(timeline); }

}  // namespace flux
