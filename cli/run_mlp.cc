// flux run mlp: the MLP of a real checkpoint, sharded, fused, compared with the unsharded one in fp64.
#include <fmt/format.h>

#include <filesystem>

#include "bench/mlp.h"
#include "bench/random.h"
#include "cli/gpu_times.h"
#include "io/npy.h"

namespace flux::cli {
namespace {

struct MlpOptions {
  Common common;
  MlpChoice choice;
  std::string weights, input, output, dtype, activation;
  int64_t rows = 2048;
  double max_error = -1, min_efficiency = -1;
  bool in_out = false;
};

double default_tolerance(DType dtype) { return dtype == DType::kF64 ? 1e-12 : dtype == DType::kF32 ? 1e-5 : 2e-2; }

// What rank 0 reports.
struct Report {
  MlpWeights const& weights;
  DType dtype;
  int64_t rows, sent_bytes, shared_bytes;
  double error, tolerance;
  bench::Overlap overlap;
  Link link;
  std::string world_kind, plan, timeline;
  int ranks;
  Engine engine;
  bool timed;
  GpuTimes on_gpu;
  std::string about_link;
  int64_t memory_bytes;
};

void print_json(Report const& r, MlpOptions const& o) {
  nlohmann::json out = {{"op", "mlp"},
                        {"family", r.weights.family},
                        {"layer", o.choice.layer},
                        {"m", r.rows},
                        {"hidden", r.weights.hidden},
                        {"intermediate", r.weights.intermediate},
                        {"gated", r.weights.gated()},
                        {"activation", name(r.weights.activation)},
                        {"tp", r.ranks},
                        {"dtype", name(r.dtype)},
                        {"world", r.world_kind},
                        {"gpu", r.engine.gpu},
                        {"chosen", r.engine.why},
                        {"plan", r.plan},
                        {"error", r.error},
                        {"tolerance", r.tolerance},
                        {"right", r.error <= r.tolerance},
                        {"shared_bytes", r.shared_bytes},
                        {"memory_bytes", r.memory_bytes}};
  if (!r.about_link.empty()) out[r.timed ? "times" : "not_timed"] = r.about_link;
  if (r.timed) out.update(r.engine.gpu ? to_json(r.on_gpu) : to_json(r.overlap, r.link, r.sent_bytes));
  if (!r.timeline.empty()) out["timeline"] = o.common.timeline_path;
  if (!o.output.empty()) out["output"] = o.output;
  fmt::print("{}\n", out.dump(2));
}

void print_text(Report const& r, MlpOptions const& o) {
  fmt::print("MLP of layer {} ({}), hidden {}, intermediate {}{}, {}: {} rows, {} on {} ranks ({})\n", o.choice.layer,
             r.weights.family, r.weights.hidden, r.weights.intermediate, r.weights.gated() ? " gated" : "",
             name(r.weights.activation), r.rows, name(r.dtype), r.ranks, r.world_kind);
  print_engine(r.engine);
  fmt::print("  error against fp64        {:10.2e}      {} (allowed {:.0e})\n", r.error,
             r.error <= r.tolerance ? "right" : "WRONG", r.tolerance);
  print_memory(r.memory_bytes);
  if (r.timed) r.engine.gpu ? print_gpu_times(r.on_gpu) : print_overlap(r.overlap, r.link);
  if (!r.about_link.empty()) fmt::print("  {}\n", r.about_link);
  fmt::print("  plan: {}\n", r.plan);
  if (!r.timeline.empty()) fmt::print("  {}\n", r.timeline);
  if (!o.output.empty()) fmt::print("  output: {} [{}, {}] {}\n", o.output, r.rows, r.weights.hidden, name(r.dtype));
}

// What only the host engine does of this model and plan; empty: nothing.
std::string of_host_alone(MlpOptions const& o, MlpWeights const& weights) {
  if (!o.dtype.empty() && size_of(parse_dtype(o.dtype)) != 2) return "GPUs multiply bf16 and fp16, not " + o.dtype;
  if (weights.hidden % 8 != 0 || weights.intermediate % 8 != 0)
    return "on GPUs hidden and intermediate size are multiples of 8";
  return only_host(o.common.plan());
}

int run_on(World& world, MlpOptions const& o, Engine const& engine) {
  bool const speaks = world.rank() == 0;
  Checkpoint const checkpoint(o.weights);
  MlpWeights const weights = find_mlp(checkpoint, o.choice);
  DType dtype = o.dtype.empty() ? weights.up.dtype : parse_dtype(o.dtype);
  if (engine.gpu && o.dtype.empty() && size_of(dtype) != 2) dtype = DType::kBF16;
  std::unique_ptr<NpyFile> file;
  OwnedTensor random;
  Tensor x;
  if (o.input.empty()) {
    random = OwnedTensor(DType::kF32, o.rows, weights.hidden);
    bench::Uniform{o.common.seed}.fill(random, 0, 0);
    x = random;
  } else {
    file = std::make_unique<NpyFile>(o.input);
    x = file->tensor();
  }
  Plan const plan = o.common.plan();
  bench::Mlp mlp(world, weights, dtype, x, plan);
  Report r{weights,
           dtype,
           x.rows,
           0,
           mlp.shared_bytes(),
           0,
           0,
           {},
           {},
           std::string(world.kind()),
           to_string(plan),
           {},
           world.size(),
           engine,
           o.common.samples > 0 && can_be_timed(world),
           {},
           about_link(world),
           mlp.memory_bytes()};
  r.error = mlp.error(256);
  r.tolerance = o.max_error >= 0 ? o.max_error : default_tolerance(dtype);
  bool const right = r.error <= r.tolerance;
  if (!o.output.empty() && right) {
    OwnedTensor const y = mlp.gathered();
    if (speaks) write_npy(o.output, y);
  }
  if (engine.gpu) {
    if (r.timed)
      r.on_gpu = timed_on_gpu(
          world, [&](bool fused) { mlp.run(fused); }, [&] { mlp.settle(); }, o.common.samples);
  } else {
    bench::Subject const subject = mlp.subject();
    r.sent_bytes = subject.sent_bytes;
    if (r.timed) r.overlap = timed(world, subject, o.common);
  }
  r.link = world.link();
  Timeline timeline;
  timeline.title = fmt::format("MLP ({}) on {} ranks: AG+GEMM, then GEMM+RS", weights.family, world.size());
  timeline.facts = {{"problem", fmt::format("{} rows, hidden {}, intermediate {}, {}", x.rows, weights.hidden,
                                            weights.intermediate, name(dtype))}};
  r.timeline = draw(
      world, o.common.timeline_path, timeline, plan.workers, [&](Timeline* t) { mlp.record(t); },
      [&] { mlp.run(true); });
  if (speaks) o.common.json ? print_json(r, o) : print_text(r, o);
  if (!right) return o.max_error >= 0 ? kFailed : kWrongOutput;
  if (o.min_efficiency >= 0 && o.common.samples > 0 && !engine.gpu) {
    // Rank 0's figure counts; the others' are the same rounds.
    bool const enough = r.overlap.efficiency() >= o.min_efficiency;
    if (!enough && speaks)
      fmt::print(stderr, "flux: E is {:.2f}, asked for {:.2f}\n", r.overlap.efficiency(), o.min_efficiency);
    return enough ? kOk : kFailed;
  }
  return kOk;
}

}  // namespace

void add_run_mlp(CLI::App& run, Action& action) {
  auto o = std::make_shared<MlpOptions>();
  CLI::App* mlp = run.add_subcommand("mlp", "The MLP of a checkpoint: AG+GEMM, activation, GEMM+RS, against fp64");
  mlp->add_option("--weights", o->weights, "A .safetensors file, an index, or a model's folder")->required();
  mlp->add_option("--layer", o->choice.layer, "Which layer's MLP")->capture_default_str();
  mlp->add_option("--prefix", o->choice.prefix, "Beginning of the tensor names, where a number means several layers");
  mlp->add_option("--up", o->choice.up, "Tensor name of the first weight, instead of the search");
  mlp->add_option("--gate", o->choice.gate, "Tensor name of the gate");
  mlp->add_option("--gate-up", o->choice.gate_up, "Tensor name of gate and up in one");
  mlp->add_option("--down", o->choice.down, "Tensor name of the second weight");
  mlp->add_option("--up-bias", o->choice.up_bias, "Tensor name of the first bias");
  mlp->add_option("--gate-bias", o->choice.gate_bias, "Tensor name of the gate's bias");
  mlp->add_option("--down-bias", o->choice.down_bias, "Tensor name of the second bias");
  mlp->add_flag("--in-out", o->in_out, "Named weights are stored [in, out]");
  mlp->add_option("--activation", o->activation, "Instead of the checkpoint's");
  mlp->add_option("--dtype", o->dtype,
                  "Computes in this dtype; default: the checkpoint's, on GPUs bf16 if that has not 16 bits");
  mlp->add_option("--rows", o->rows, "Rows of random input")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31))
      ->capture_default_str();
  mlp->add_option("--input", o->input, "A .npy file [rows, hidden] instead of random input");
  mlp->add_option("--output", o->output, "Writes y [rows, hidden] as .npy");
  mlp->add_option("--max-error", o->max_error, "Exit code 1 if the error is larger");
  mlp->add_option("--min-efficiency", o->min_efficiency, "Exit code 1 if E is smaller; asked of the host alone");
  o->common.world.ranks = 8;
  o->common.add_to(*mlp);
  o->common.world.add_gpu_to(*mlp);
  mlp->callback([o, &action] {
    action = [o] {
      if (o->in_out) o->choice.layout = WeightLayout::kInOut;
      if (!o->activation.empty()) o->choice.activation = parse_activation(o->activation);
      if (!o->dtype.empty() && size_of(parse_dtype(o->dtype)) == 1)
        throw Error(ErrorKind::kInvalid,
                    fmt::format("an MLP is computed in fp32, bf16, fp16 or fp64, not {}: checkpoints "
                                "have no scales for it; `flux run ag_gemm` takes it",
                                o->dtype));
      o->common.plan();
      require_writable(o->common.timeline_path);
      require_writable(o->output);
      Checkpoint const checkpoint(o->weights);
      MlpWeights const weights = find_mlp(checkpoint, o->choice);  // a mistake is said once, before any rank starts
      Engine const engine = o->common.world.engine(of_host_alone(*o, weights));
      return o->common.world.run([&](World& world) { return run_on(world, *o, engine); }, engine.gpu);
    };
  });
}

}  // namespace flux::cli
