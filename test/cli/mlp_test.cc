// flux run mlp: checkpoints of several families, sharded, against fp64.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "bench/random.h"
#include "cli/flux.h"
#include "io/checkpoint.h"
#include "io/npy.h"
#include "io/owned_tensor.h"
#include "temporary_folder.h"

namespace flux::test {
namespace {

// A little model on disk: names as its family has them.
struct Model {
  TemporaryFolder folder;
  std::map<std::string, OwnedTensor> tensors;
  std::string path() const { return (folder / "model.safetensors").string(); }
  void add(std::string const& name, DType dtype, int64_t rows, int64_t columns) {
    tensors[name] = OwnedTensor(dtype, rows, columns);
    bench::Uniform{tensors.size(), 0.5}.fill(tensors[name], 0, 0);
  }
  void write() {
    std::map<std::string, Tensor> views;
    for (auto& [name, tensor] : tensors) views[name] = tensor.view();
    write_safetensors(path(), views);
  }
};

void add_llama(Model& model, DType dtype) {
  model.add("model.layers.0.mlp.gate_proj.weight", dtype, 100, 48);
  model.add("model.layers.0.mlp.up_proj.weight", dtype, 100, 48);
  model.add("model.layers.0.mlp.down_proj.weight", dtype, 48, 100);
}

TEST(RunMlp, GatedAndPlainFamiliesAreRight) {
  Model llama, gpt2, bert;
  add_llama(llama, DType::kBF16);
  for (auto [name, rows, columns] : {std::tuple{"h.0.mlp.c_fc.weight", 32, 96},
                                     {"h.0.mlp.c_fc.bias", 1, 96},
                                     {"h.0.mlp.c_proj.weight", 96, 32},
                                     {"h.0.mlp.c_proj.bias", 1, 32}})
    gpt2.add(name, DType::kF32, rows, columns);
  for (auto [name, rows, columns] : {std::tuple{"encoder.layer.0.intermediate.dense.weight", 96, 32},
                                     {"encoder.layer.0.intermediate.dense.bias", 1, 96},
                                     {"encoder.layer.0.output.dense.weight", 32, 96},
                                     {"encoder.layer.0.output.dense.bias", 1, 32}})
    bert.add(name, DType::kF16, rows, columns);
  for (Model* model : {&llama, &gpt2, &bert}) {
    model->write();
    for (std::string world : {"threads", "processes"}) {
      auto const done =
          on_host("run mlp --ranks 3 --rows 50 --samples 0 --json --weights " + model->path() + " --world " + world);
      ASSERT_EQ(done.code, 0) << done.text;
      EXPECT_TRUE(done.json()["right"]) << done.text;
    }
    // The same weights in fp32: the error is that of fp32.
    auto const wide = on_host("run mlp --ranks 2 --rows 50 --samples 0 --json --dtype fp32 --weights " + model->path());
    EXPECT_LT(wide.json()["error"].get<double>(), 2e-6);
  }
}

TEST(RunMlp, ReadsAndWritesNpyAndMatchesAnUnshardedRun) {
  Model model;
  add_llama(model, DType::kF32);
  model.write();
  OwnedTensor x(DType::kF32, 37, 48);
  bench::Uniform{9}.fill(x, 0, 0);
  std::string const in = model.folder / "x.npy", one = model.folder / "one.npy", five = model.folder / "five.npy";
  write_npy(in, x);
  std::string const base = "run mlp --samples 0 --weights " + model.path() + " --input " + in;
  ASSERT_EQ(on_host(base + " --ranks 1 --output " + one).code, 0);
  ASSERT_EQ(on_host(base + " --ranks 5 --world processes --output " + five).code, 0);
  NpyFile const a(one), b(five);
  EXPECT_EQ(a.shape(), (std::vector<int64_t>{37, 48}));
  EXPECT_EQ(b.shape(), a.shape());
  double difference = 0, size = 0;
  for (int64_t i = 0; i < 37; ++i)
    for (int64_t j = 0; j < 48; ++j) {
      auto at = [&](NpyFile const& file) { return static_cast<float*>(file.tensor().row(i))[j]; };
      difference += std::pow(at(a) - at(b), 2), size += std::pow(at(a), 2);
    }
  EXPECT_GT(size, 0.1);
  EXPECT_LT(std::sqrt(difference / size), 1e-6);
}

TEST(RunMlp, ExplicitNamesOverrideTheSearch) {
  Model model;
  model.add("a", DType::kF32, 64, 16);
  model.add("b", DType::kF32, 16, 64);
  model.write();
  auto const done = on_host(
      "run mlp --ranks 2 --rows 20 --samples 0 --json --up a --down b --activation relu --weights " + model.path());
  ASSERT_EQ(done.code, 0) << done.text;
  EXPECT_EQ(done.json()["family"], "explicit");
  EXPECT_EQ(done.json()["activation"], "relu");
}

// Where a GPU of compute capability 9.0 is, the ranks share it or have one each. Elsewhere, one sentence.
TEST(RunMlp, OnGpus) {
  Model gated, plain;
  add_llama(gated, DType::kBF16);  // 100 is no multiple of 8: of the host alone
  for (auto [name, rows, columns] : {std::tuple{"h.0.mlp.c_fc.weight", 32, 96},
                                     {"h.0.mlp.c_fc.bias", 1, 96},
                                     {"h.0.mlp.c_proj.weight", 96, 32},
                                     {"h.0.mlp.c_proj.bias", 1, 32}})
    plain.add(name, DType::kF32, rows, columns);
  gated.write(), plain.write();
  TemporaryFolder folder;
  std::string const chart = folder / "mlp.json";
  auto const done =
      flux("run mlp --gpu --ranks 3 --rows 50 --samples 2 --json --weights " + plain.path() + " --timeline " + chart);
  auto const by_itself = flux("run mlp --ranks 3 --rows 50 --samples 0 --json --weights " + plain.path());
  auto const odd = flux("run mlp --ranks 3 --rows 50 --samples 0 --json --weights " + gated.path());
  EXPECT_FALSE(odd.json()["gpu"]);
  EXPECT_NE(std::string(odd.json()["chosen"]).find("multiples of 8"), std::string::npos) << odd.text;
  EXPECT_EQ(by_itself.json()["gpu"], hopper());
  if (!hopper()) {
    EXPECT_EQ(done.code, 2) << done.text;
    EXPECT_NE(done.text.find("--gpu asks for GPUs, but "), std::string::npos) << done.text;
    EXPECT_EQ(std::count(done.text.begin(), done.text.end(), '\n'), 1) << done.text;
    return;
  }
  ASSERT_EQ(done.code, 0) << done.text;
  EXPECT_TRUE(done.json()["right"]);
  EXPECT_EQ(done.json()["dtype"], "bf16");
  EXPECT_GT(done.json()["none_us"].get<double>(), 0.0);
  EXPECT_TRUE(std::filesystem::exists(chart));
}

TEST(RunMlp, BarsDecideTheExitCode) {
  Model model;
  add_llama(model, DType::kF32);
  model.write();
  EXPECT_EQ(on_host("run mlp --ranks 2 --rows 20 --samples 0 --max-error 1e-5 --weights " + model.path()).code, 0);
  EXPECT_EQ(on_host("run mlp --ranks 2 --rows 20 --samples 0 --max-error 1e-12 --weights " + model.path()).code, 1);
  EXPECT_EQ(on_host("run mlp --ranks 2 --rows 20 --samples 1 --min-efficiency 50 --weights " + model.path()).code, 1);
}

TEST(RunMlp, BadInputGetsOneSentenceAndLeavesNothing) {
  Model model, lame;
  add_llama(model, DType::kF32);
  model.write();
  lame.add("model.layers.0.mlp.gate_proj.weight", DType::kF32, 100, 48);
  lame.add("model.layers.0.mlp.up_proj.weight", DType::kF32, 90, 48);
  lame.add("model.layers.0.mlp.down_proj.weight", DType::kF32, 48, 100);
  lame.write();
  std::string const broken = model.folder / "broken.safetensors", wide = model.folder / "wide.npy",
                    out = model.folder / "y.npy";
  std::filesystem::copy_file(model.path(), broken);
  std::filesystem::resize_file(broken, 1000);
  write_npy(wide, OwnedTensor(DType::kF32, 4, 50));
  std::string const base = "run mlp --ranks 2 --rows 8 --samples 0 --output " + out + " --weights ";
  for (auto const& [arguments, says] : std::map<std::string, std::string>{
           {base + "nowhere.safetensors", "nowhere.safetensors"},
           {base + broken, "broken.safetensors"},
           {base + lame.path(), "up_proj"},
           {base + model.path() + " --layer 7", "7"},
           {base + model.path() + " --up no.such.tensor --down x", "no.such.tensor"},
           {base + model.path() + " --input " + wide, "50 columns"},
           {base + model.path() + " --input nowhere.npy", "nowhere.npy"},
           {base + model.path() + " --dtype int8", "int8"},
           {"run mlp --weights " + model.path() + " --output /nowhere/y.npy", "cannot be written"}})
    for (std::string world : {"threads", "processes"}) {
      auto const done = flux(arguments + " --world " + world);
      EXPECT_EQ(done.code, 2) << arguments << "\n" << done.text;
      EXPECT_NE(done.text.find(says), std::string::npos) << arguments << "\n" << done.text;
      EXPECT_EQ(std::count(done.text.begin(), done.text.end(), '\n'), 1) << arguments << "\n" << done.text;
      EXPECT_FALSE(std::filesystem::exists(out));
    }
}

}  // namespace
}  // namespace flux::test
