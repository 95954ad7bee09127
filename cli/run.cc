// flux run ag_gemm | gemm_rs | gemm_ar: one operator on random data, checked and timed.
#include <fmt/format.h>

#include "bench/case.h"
#include "bench/tolerance.h"
#include "cli/gpu_times.h"

namespace flux::cli {
namespace {

struct RunOptions {
  Common common;
  bench::Problem problem;
  std::string dtype = "fp32", layout = "[out,in]", activation = "none";
};

// What only the host engine does of this problem and plan; empty: nothing.
std::string of_host_alone(RunOptions const& o, bool dtype_given) {
  auto const& p = o.problem;
  if (dtype_given && size_of(p.dtype) > 2)
    return fmt::format("GPUs multiply bf16, fp16, int8 and fp8, not {}", name(p.dtype));
  int64_t const width = p.gated ? p.n / 2 : p.n;
  if (width % 8 != 0 || p.k % k_unit(p.dtype) != 0)
    return "on GPUs n (gated: n / 2) and k are multiples of 8 (k of int8 and fp8: of 16)";
  return only_host(o.common.plan());
}

int run_on(World& world, RunOptions const& o, Engine const& engine) {
  bench::Problem const& p = o.problem;
  Plan const plan = o.common.plan();
  bool const speaks = world.rank() == 0;
  bench::Case test(world, p, plan, o.common.seed);
  double const error = test.error(64);
  bool const right = error <= bench::tolerance(p.dtype, p.op, test.plan(), world.size());

  bool const timed_too = o.common.samples > 0 && can_be_timed(world);
  bench::Overlap overlap;
  GpuTimes on_gpu;
  if (timed_too && world.on_gpu())
    on_gpu = timed_on_gpu(
        world, [&](bool fused) { test.run(fused); }, [&] { test.settle(); }, o.common.samples);
  else if (timed_too)
    overlap = timed(world, test.subject(), o.common);
  std::string const told = draw(
      world, o.common.timeline_path, bench::timeline_of(p, world.size()), plan.workers,
      [&](Timeline* t) { test.record(t); }, [&] { test.run(true); });
  if (!speaks) return right ? kOk : kWrongOutput;

  if (o.common.json) {
    nlohmann::json out = {{"op", name(p.op)},
                          {"m", p.m},
                          {"n", p.n},
                          {"k", p.k},
                          {"tp", world.size()},
                          {"dtype", name(p.dtype)},
                          {"weight", name(p.layout)},
                          {"world", world.kind()},
                          {"nodes", world.nodes()},
                          {"gpu", world.on_gpu()},
                          {"chosen", engine.why},
                          {"plan", to_string(test.plan())},
                          {"error", error},
                          {"right", right},
                          {"shared_bytes", test.shared_bytes()},
                          {"memory_bytes", test.memory().total()}};
    if (auto about = about_link(world); !about.empty()) out[timed_too ? "times" : "not_timed"] = about;
    if (timed_too) out.update(world.on_gpu() ? to_json(on_gpu) : to_json(overlap, world.link(), test.sent_bytes()));
    if (!told.empty()) out["timeline"] = o.common.timeline_path;
    fmt::print("{}\n", out.dump(2));
  } else {
    fmt::print("{} m={} n={} k={} {} on {}\n", name(p.op), p.m, p.n, p.k, name(p.dtype), ranks_of(world));
    print_engine(engine);
    if (world.nodes() > 1)
      fmt::print("  between nodes             {:>10}      {}\n", "sockets",
                 o.common.world.nic_gbps > 0 ? fmt::format("declared, not real: {:.3g} GB/s a rank, {:g} us",
                                                           o.common.world.nic_gbps, o.common.world.nic_latency_us)
                                             : "no rate declared");
    fmt::print("  error against fp64        {:10.2e}      {}\n", error, right ? "right" : "WRONG");
    print_memory(test.memory().total());
    if (timed_too) world.on_gpu() ? print_gpu_times(on_gpu) : print_overlap(overlap, world.link());
    if (auto about = about_link(world); !about.empty()) fmt::print("  {}\n", about);
    fmt::print("  plan: {}\n", to_string(test.plan()));
    if (!told.empty()) fmt::print("  {}\n", told);
  }
  return right ? kOk : kWrongOutput;
}

void add_operator(CLI::App& run, Action& action, Op op, char const* about) {
  auto o = std::make_shared<RunOptions>();
  o->problem.op = op;
  CLI::App* command = run.add_subcommand(std::string(name(op)), about);
  command->add_option("--m", o->problem.m, "Rows, over all ranks")->required();
  command->add_option("--n", o->problem.n, "Output columns of the whole weight")->required();
  command->add_option("--k", o->problem.k, "Depth, over all ranks")->required();
  CLI::Option const* dtype =
      command
          ->add_option("--dtype", o->dtype,
                       "fp32, bf16, fp16, fp64, int8 or fp8 (e4m3); on GPUs bf16 (the default there), fp16, int8 "
                       "or, from compute capability 8.9 on, fp8")
          ->capture_default_str();
  command->add_option("--weight", o->layout, "Weight layout: [out,in] or [in,out]")->capture_default_str();
  command->add_flag("--bias", o->problem.bias, "Adds a bias");
  if (op == Op::kAllGatherGemm) {
    command->add_option("--activation", o->activation, "none, relu, gelu, gelu_tanh, quick_gelu or silu")
        ->capture_default_str();
    command->add_flag("--gated", o->problem.gated, "n counts gate and up; y = act(gate) * up");
  }
  o->common.add_to(*command);
  o->common.world.add_gpu_to(*command);
  command->callback([o, dtype, &action] {
    action = [o, dtype] {
      o->problem.dtype = parse_dtype(o->dtype);
      o->problem.layout = parse_weight_layout(o->layout);
      o->problem.activation = parse_activation(o->activation);
      bench::check_problem(o->problem);
      o->common.plan();
      require_writable(o->common.timeline_path);
      Engine const engine = o->common.world.engine(of_host_alone(*o, dtype->count() > 0));
      if (engine.gpu && dtype->count() == 0) o->problem.dtype = DType::kBF16;
      return o->common.world.run([&](World& world) { return run_on(world, *o, engine); }, engine.gpu);
    };
  });
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* run =
      app.add_subcommand("run", "Runs an operator, or a model's MLP, on this machine: checked, timed, drawn");
  run->require_subcommand(1);
  add_operator(*run, action, Op::kAllGatherGemm, "AllGather + GEMM: y[m, n/W] = all_gather(x) w^T");
  add_operator(*run, action, Op::kGemmReduceScatter, "GEMM + ReduceScatter: y[m/W, n] = reduce_scatter(x w^T)");
  add_operator(*run, action, Op::kGemmAllReduce, "GEMM + AllReduce: y[m, n] = all_reduce(x w^T)");
  add_run_mlp(*run, action);
}

}  // namespace flux::cli
