#include "plan/step.h"

#include <fmt/format.h>

#include <algorithm>

#include "flux/error.h"

namespace flux {
namespace {

// What is assumed of all that is no tensor-parallel product. docs/simulator.md has them in words.
constexpr double kAttentionReaches = 0.5;   // of the GEMM's rate, by a fused attention kernel
constexpr double kMemoryReaches = 0.75;     // of the memory's rate, by kernels that only move data
constexpr double kSmallKernelUs = 3;        // the least that such a kernel takes
constexpr double kKernels = 6;              // of a layer: two norms with residual, rotary, activation, cache, sum
constexpr double kBesideCollective = 0.92;  // a GEMM's rate while a collective has some processors
constexpr double kGradientBytes = 4;        // fp32 gradients between replicas
constexpr double kOptimizerBytes = 28;      // Adam: parameters, two moments, gradient, read and written

double of(int64_t count) { return static_cast<double>(count); }

struct Layer {
  double gemm = 0, communication = 0, attention = 0, rest = 0;
  Layer operator+(Layer const& o) const {
    return {gemm + o.gemm, communication + o.communication, attention + o.attention, rest + o.rest};
  }
  double total() const { return gemm + communication + attention + rest; }
};

class Model {
 public:
  Model(StepProblem const& problem, Method method, Costs& costs) : p_(problem), method_(method), costs_(costs) {}

  Step run() {
    if (p_.phase == Phase::kTrain) return train();
    bool const decode = p_.phase == Phase::kDecode;
    int64_t const m = decode ? p_.batch : p_.batch * p_.seq;
    Layer const layer = inference_layer(m);
    Step step;
    add(step, layer, of(p_.model.layers));
    // Logits of the last token of each sequence.
    step.parts.push_back(
        {"logits", costs_.gemm_us(p_.batch, (p_.model.vocabulary + p_.tp - 1) / p_.tp, p_.model.hidden)});
    return step;
  }

 private:
  Machine const& machine() const { return costs_.machine(); }
  int nodes() const { return p_.nodes > 0 ? p_.nodes : machine().nodes_of(p_.tp); }
  double moved_us(double bytes, double kernels) const {
    return std::max(kernels * kSmallKernelUs, bytes / (machine().memory_gbps * kMemoryReaches) / 1e3);
  }
  double flops_us(double flops) const {
    return flops / (2 * machine().products * machine().processors * machine().clock_mhz);
  }

  static void add(Step& step, Layer const& layer, double times) {
    step.parts.push_back({"GEMMs", times * layer.gemm});
    step.parts.push_back({"tensor-parallel communication", times * layer.communication});
    step.parts.push_back({"attention", times * layer.attention});
    step.parts.push_back({"norms, residuals, activations", times * layer.rest});
    step.tp_us = times * layer.communication;
  }

  Layer products(std::initializer_list<Problem> problems, Method method) {
    Layer sum;
    for (Problem const& problem : problems) {
      OperatorCost const cost = costs_.of(problem, method);
      sum.gemm += cost.gemm_us, sum.communication += cost.exposed_us();
    }
    return sum;
  }

  // Elementwise work: on rows divided among the ranks (norms, residuals), and on the MLP's columns.
  double rest_us(int64_t m, bool divided) const {
    double const rows = of(m) / (divided ? p_.tp : 1);
    double const bytes = 2 * (10 * rows * of(p_.model.hidden) +
                              of(m) / p_.tp * (2 * of(p_.model.qkv()) + of(p_.model.up()) + of(p_.model.ffn)));
    return moved_us(bytes, kKernels);
  }
  double attention_us(int64_t sequences) const {
    double const causal = 2 * of(p_.seq) * of(p_.seq) * of(p_.model.hidden) * of(sequences) / p_.tp;
    return std::max(kSmallKernelUs, flops_us(causal) / kAttentionReaches);
  }

  // Inference: sums meet at every rank after o and down (all-reduce); or rows stay divided between them, as in
  // training. A method takes what is faster for it; `none` all-reduces, as serving libraries do.
  Layer inference_layer(int64_t m) {
    LayerOperators const op = layer_operators(p_.model, m, p_.tp, nodes());
    auto reduced = [&](Problem problem) { return problem.op = Op::kGemmAllReduce, problem; };
    auto alone = [&](Problem const& problem) { return parts(problem, machine()).gemm_us; };
    Layer whole = products({reduced(op.o), reduced(op.down)}, method_);
    whole.gemm += alone(op.qkv) + alone(op.up);
    whole.rest = rest_us(m, false);
    Layer layer = whole;
    if (method_ != Method::kNone) {
      Layer divided = products({op.qkv, op.o, op.up, op.down}, method_);
      divided.rest = rest_us(m, true);
      if (divided.total() < whole.total()) layer = divided;
    }
    if (p_.phase == Phase::kPrefill) {
      layer.attention = attention_us(p_.batch);
    } else {
      double const cache = of(p_.batch) * of(p_.seq) * 2 * of(p_.model.kv_heads * p_.model.head()) * 2 / p_.tp;
      layer.attention = moved_us(cache, 1);
    }
    return layer;
  }

  // ---- training ----

  Layer forward(int64_t m) {
    LayerOperators const op = layer_operators(p_.model, m, p_.tp, nodes());
    Layer layer = products({op.qkv, op.o, op.up, op.down}, method_);
    layer.attention = attention_us(p_.micro), layer.rest = rest_us(m, true);
    return layer;
  }

  // Of a column-parallel product: its rows are gathered again for the weight's gradient while the input's is
  // multiplied, and that is scattered while the weight's is; so it is in Megatron-LM, and every method may do it.
  Layer column_backward(Problem const& forward) {
    Problem input = forward;
    input.op = Op::kGemmReduceScatter, input.n = forward.k, input.k = forward.n;
    OperatorCost const fused = costs_.of(input, method_);
    double const wgrad = costs_.gemm_us(forward.local_n(), forward.k, forward.m);
    double const collective = parts(forward, machine()).collective_us;
    double const apart =
        std::max(fused.gemm_us / kBesideCollective, collective) + std::max(wgrad / kBesideCollective, collective);
    double const together = std::max(fused.total_us / kBesideCollective, collective) + wgrad;
    double const total = method_ == Method::kFlux ? std::min(apart, together) : apart;
    return {fused.gemm_us + wgrad, total - fused.gemm_us - wgrad, 0, 0};
  }
  Layer row_backward(Problem const& forward) {
    Problem input = forward;
    input.op = Op::kAllGatherGemm, input.n = forward.k, input.k = forward.n;
    OperatorCost const fused = costs_.of(input, method_);
    double const wgrad = costs_.gemm_us(forward.n, forward.local_k(), forward.m);
    return {fused.gemm_us + wgrad, fused.exposed_us(), 0, 0};
  }
  Layer backward(int64_t m) {
    LayerOperators const op = layer_operators(p_.model, m, p_.tp, nodes());
    Layer layer = column_backward(op.qkv) + column_backward(op.up) + row_backward(op.o) + row_backward(op.down);
    layer.attention = 2.5 * attention_us(p_.micro), layer.rest = 2 * rest_us(m, true);
    return layer;
  }

  Step train() {
    int64_t const m = p_.micro * p_.seq;
    double const stages = p_.pp, layers = of(p_.model.layers) / stages;
    double const micros = of(p_.batch / p_.dp / p_.micro);
    Layer const layer = forward(m) + backward(m);
    Step step;
    add(step, layer, layers * micros);
    double const head = 3 * costs_.gemm_us(m, (p_.model.vocabulary + p_.tp - 1) / p_.tp, p_.model.hidden);
    step.parts.push_back({"logits", head * micros});
    double const stage = layers * layer.total() + head;
    step.parts.push_back({"pipeline bubble", (stages - 1) * stage});
    double const sent = of(m) * of(p_.model.hidden) * 2 / p_.tp / p_.network_gbps / 1e3;
    step.parts.push_back({"between stages", p_.pp > 1 ? 2 * sent * (stages - 1) : 0});
    double const mine = p_.model.parameters() / p_.tp / stages;
    double const reduced = 2 * (p_.dp - 1.) / p_.dp * mine * kGradientBytes / p_.network_gbps / 1e3;
    step.parts.push_back({"gradients between replicas", reduced});
    step.parts.push_back({"optimizer", moved_us(mine * kOptimizerBytes, 1)});
    return step;
  }

  StepProblem const& p_;
  Method method_;
  Costs& costs_;
};

}  // namespace

std::string_view name(Phase phase) {
  return phase == Phase::kTrain ? "train" : phase == Phase::kPrefill ? "prefill" : "decode";
}

double Step::total_us() const {
  double sum = 0;
  for (StepPart const& part : parts) sum += part.us;
  return sum;
}

void require_step(StepProblem const& p) {
  auto require = [](bool ok, std::string const& what) {
    if (!ok) throw Error(ErrorKind::kInvalid, what);
  };
  auto within = [&](std::string_view what, int64_t given, int64_t least, int64_t most) {
    require(given >= least && given <= most, fmt::format("{} is {}; allowed are {} to {}", what, given, least, most));
  };
  within("tp", p.tp, 1, kMaxRanks), within("pp", p.pp, 1, 1024), within("dp", p.dp, 1, 10000);
  within("gpus (tp x pp x dp)", p.gpus(), 1, 10000);
  within("batch", p.batch, 1, 1 << 20), within("micro", p.micro, 1, 1 << 20), within("seq", p.seq, 1, 1 << 20);
  require(p.network_gbps > 0 && p.network_gbps < 1e5,
          fmt::format("network rate is {} GB/s; allowed is more than 0", p.network_gbps));
  require(p.model.heads % p.tp == 0,
          fmt::format("tp is {}; {} has {} heads, which it must divide", p.tp, p.model.name, p.model.heads));
  require(
      p.phase == Phase::kTrain || (p.pp == 1 && p.dp == 1),
      fmt::format("pp is {} and dp is {}; prefill and decode are simulated on one replica of one stage", p.pp, p.dp));
  if (p.phase != Phase::kTrain) return;
  require(p.model.layers % p.pp == 0,
          fmt::format("pp is {}; {} has {} layers, which it must divide", p.pp, p.model.name, p.model.layers));
  require(p.batch % (p.dp * p.micro) == 0,
          fmt::format("batch is {}; it must be a multiple of dp x micro = {}", p.batch, p.dp * p.micro));
}

Step simulate_step(StepProblem const& problem, Method method, Costs& costs) {
  require_step(problem);
  return Model(problem, method, costs).run();
}

}  // namespace flux
