// Whole models: what must hold of any step, and what the published clusters show.
#include "plan/step.h"

#include <gtest/gtest.h>

#include "error_of.h"

namespace flux {
namespace {

StepProblem problem(Phase phase, char const* model, int64_t batch) {
  StepProblem p;
  p.phase = phase, p.model = find_transformer(model), p.batch = batch;
  if (phase == Phase::kTrain) p.pp = 8, p.dp = 2;
  return p;
}

double part(Step const& step, std::string_view name) {
  for (StepPart const& one : step.parts)
    if (one.name == name) return one.us;
  ADD_FAILURE() << "no part " << name;
  return 0;
}

TEST(Transformer, HasThePublishedNumberOfParameters) {
  EXPECT_NEAR(find_transformer("gpt3-175b").parameters() / 175e9, 1, 0.01);
  EXPECT_NEAR(find_transformer("llama2-70b").parameters() / 69e9, 1, 0.01);
  EXPECT_NEAR(find_transformer("llama3-8b").parameters() / 8.03e9, 1, 0.01);
  EXPECT_NEAR(find_transformer("llama3-70b").parameters() / 70.6e9, 1, 0.01);
  EXPECT_NEAR(find_transformer("llama3-405b").parameters() / 405.8e9, 1, 0.01);
  EXPECT_HAS(invalid([] { find_transformer("gpt9"); }), "llama3-405b");
}

TEST(Transformer, ItsLayersAreTheSuitesWorkloads) {
  LayerOperators const gpt3 = layer_operators(find_transformer("gpt3-175b"), 2048, 8);
  EXPECT_EQ(gpt3.up, (Problem{Op::kAllGatherGemm, 2048, 49152, 12288, 8}));
  EXPECT_EQ(gpt3.down, (Problem{Op::kGemmReduceScatter, 2048, 12288, 49152, 8}));
  EXPECT_EQ(gpt3.qkv.n, 36864);
  LayerOperators const llama = layer_operators(find_transformer("llama2-70b"), 2048, 8);
  EXPECT_EQ(llama.up.n, 57344);
  EXPECT_EQ(llama.qkv.n, 10240);
  EXPECT_EQ(llama.o.k, 8192);
}

TEST(Methods, FluxIsNeverSlowerThanNotFusing) {
  for (char const* machine : {"h800", "a100-pcie"}) {
    Costs costs(find_machine(machine));
    for (int64_t m : {1, 64, 1000, 8192})
      for (Op op : {Op::kAllGatherGemm, Op::kGemmReduceScatter, Op::kGemmAllReduce}) {
        Problem const p{op, m, 8192, 8192, 8};
        EXPECT_LE(costs.of(p, Method::kFlux).total_us, costs.of(p, Method::kNone).total_us);
        EXPECT_GE(costs.of(p, Method::kFlux).total_us, parts(p, costs.machine()).floor_us());
        EXPECT_GT(costs.of(p, Method::kChunked).total_us, costs.of(p, Method::kChunked).gemm_us);
      }
  }
  EXPECT_EQ(parse_method("chunked"), Method::kChunked);
  EXPECT_HAS(invalid([] { parse_method("magic"); }), "flux, none, chunked");
}

// Pieces are too small where m is small, and worth it where the link is as long as the GEMM.
TEST(Methods, ChunkingLosesAtSmallMAndGainsAtLarge) {
  Costs costs(find_machine("h800"));
  Problem p{Op::kAllGatherGemm, 512, 49152, 12288, 8};
  EXPECT_GT(costs.of(p, Method::kChunked).total_us, costs.of(p, Method::kNone).total_us);
  p.m = 16384;
  EXPECT_LT(costs.of(p, Method::kChunked).total_us, costs.of(p, Method::kNone).total_us);
  EXPECT_GT(costs.of(p, Method::kChunked).total_us, costs.of(p, Method::kFlux).total_us);
}

TEST(Step, TensorParallelismOverOneRankCommunicatesNothing) {
  Costs costs(find_machine("h200"));
  for (Phase phase : {Phase::kPrefill, Phase::kDecode}) {
    StepProblem p = problem(phase, "llama3-8b", 4);
    p.tp = 1;
    EXPECT_NEAR(simulate_step(p, Method::kNone, costs).tp_us, 0, 1e-6);
  }
}

TEST(Step, ItsPartsGrowAsTheyShould) {
  Costs costs(find_machine("h800"));
  StepProblem p = problem(Phase::kTrain, "gpt3-175b", 256);
  Step const base = simulate_step(p, Method::kNone, costs);
  p.batch = 512;
  Step const twice = simulate_step(p, Method::kNone, costs);
  EXPECT_NEAR(part(twice, "GEMMs") / part(base, "GEMMs"), 2, 1e-9);
  EXPECT_NEAR(part(twice, "pipeline bubble"), part(base, "pipeline bubble"), 1e-6);
  EXPECT_NEAR(part(twice, "optimizer"), part(base, "optimizer"), 1e-6);
  p.batch = 256, p.dp = 1;
  EXPECT_EQ(part(simulate_step(p, Method::kNone, costs), "gradients between replicas"), 0);
  p.pp = 1;
  EXPECT_EQ(part(simulate_step(p, Method::kNone, costs), "pipeline bubble"), 0);
  double sum = 0;
  for (StepPart const& one : base.parts) sum += one.us;
  EXPECT_NEAR(sum, base.total_us(), 1e-6);
  // 6 flops a parameter and token: the GEMMs alone cannot be faster than the tensor cores.
  double const flops = 6 * p.model.parameters() * 256 * 2048, peak = 128 * 989e12;
  EXPECT_GT(base.total_us() * 1e-6, flops / peak);
  EXPECT_LT(base.total_us() * 1e-6, 5 * flops / peak);
}

TEST(Step, TenThousandGpus) {
  Costs costs(find_machine("h100"));
  StepProblem p = problem(Phase::kTrain, "llama3-405b", 1248);
  p.tp = 8, p.pp = 2, p.dp = 624, p.micro = 1;
  EXPECT_EQ(p.gpus(), 9984);
  EXPECT_GT(simulate_step(p, Method::kFlux, costs).total_us(), 0);
}

// The FLUX paper: communication is 8 to 11 % of training on A100 NVLink and 40 to 75 % on A100 PCIe.
TEST(Step, CommunicationsShareIsNearThePublished) {
  for (char const* model : {"gpt3-175b", "llama2-70b"}) {
    Costs nvlink(find_machine("a100-sxm")), pcie(find_machine("a100-pcie"));
    StepProblem const p = problem(Phase::kTrain, model, 256);
    double const on_nvlink = simulate_step(p, Method::kNone, nvlink).tp_share();
    double const on_pcie = simulate_step(p, Method::kNone, pcie).tp_share();
    EXPECT_GT(on_nvlink, 0.08);
    EXPECT_LT(on_nvlink, 0.18);
    EXPECT_GT(on_pcie, 0.40);
    EXPECT_LT(on_pcie, 0.75);
  }
}

TEST(Step, BadInputSaysWhatIsAllowed) {
  auto says = [](auto change) {
    StepProblem p = problem(Phase::kTrain, "gpt3-175b", 256);
    change(p);
    return invalid([&] { require_step(p); });
  };
  EXPECT_HAS(says([](StepProblem& p) { p.tp = 7; }), "96 heads");
  EXPECT_HAS(says([](StepProblem& p) { p.pp = 7; }), "96 layers");
  EXPECT_HAS(says([](StepProblem& p) { p.batch = 255; }), "multiple of dp x micro = 2");
  EXPECT_HAS(says([](StepProblem& p) { p.dp = 2000; }), "gpus");
  EXPECT_HAS(says([](StepProblem& p) { p.seq = 0; }), "seq is 0");
  EXPECT_HAS(says([](StepProblem& p) { p.phase = Phase::kDecode; }), "one replica");
  EXPECT_HAS(says([](StepProblem& p) { p.network_gbps = 0; }), "network");
}

}  // namespace
}  // namespace flux
