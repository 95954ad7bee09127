#include "io/mlp_weights.h"

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <memory>
#include <string>

#include "error_of.h"
#include "io/owned_tensor.h"
#include "temporary_folder.h"

namespace flux {
namespace {

constexpr int64_t kHidden = 4, kIntermediate = 6;

/// Weights that outlive their model: the mapping lives on without the file.
struct Found : MlpWeights {
  std::shared_ptr<Checkpoint> checkpoint;
};

/// A checkpoint on disk made of small fp32 tensors, every element of the i-th being i.
class Model {
 public:
  Model& add(std::string const& name, int64_t rows, int64_t columns, DType dtype = DType::kF32) {
    OwnedTensor const& tensor = memory_.emplace_back(dtype, rows, columns);
    ++count_;
    if (dtype == DType::kF32)
      for (int64_t i = 0; i < rows * columns; ++i) static_cast<float*>(tensor.view().data)[i] = count_;
    tensors_[name] = tensor;
    return *this;
  }
  Model& config(std::string_view text) {
    folder_.file("config.json", text);
    return *this;
  }
  Checkpoint open() const {
    write_safetensors(folder_ / "model.safetensors", tensors_);
    return Checkpoint(folder_.path());
  }
  Found find(MlpChoice const& choice = {}) const {
    auto checkpoint = std::make_shared<Checkpoint>(open());
    return {find_mlp(*checkpoint, choice), checkpoint};
  }

 private:
  TemporaryFolder folder_;
  std::list<OwnedTensor> memory_;
  std::map<std::string, Tensor> tensors_;
  float count_ = 0;
};

/// The value of all elements, 0 for none.
float value(Tensor const& tensor) { return tensor ? *static_cast<float const*>(tensor.data) : 0; }

/// Tensors of a plain or gated MLP with torch.nn.Linear's layout, in the order up, down[, gate].
Model linear(std::string const& up, std::string const& down, std::string const& gate = "") {
  Model model;
  model.add(up + ".weight", kIntermediate, kHidden).add(down + ".weight", kHidden, kIntermediate);
  if (!gate.empty()) model.add(gate + ".weight", kIntermediate, kHidden);
  return model;
}

void expect_linear(MlpWeights const& mlp, std::string_view family, Activation activation) {
  EXPECT_EQ(mlp.family, family);
  EXPECT_EQ(name(mlp.activation), name(activation));
  EXPECT_EQ(mlp.layout, WeightLayout::kOutIn);
  EXPECT_EQ(mlp.hidden, kHidden);
  EXPECT_EQ(mlp.intermediate, kIntermediate);
  EXPECT_EQ(mlp.up.rows, kIntermediate);
  EXPECT_EQ(mlp.up.columns, kHidden);
  EXPECT_EQ(mlp.down.rows, kHidden);
  EXPECT_EQ(mlp.down.columns, kIntermediate);
  EXPECT_EQ(value(mlp.up), 1);
  EXPECT_EQ(value(mlp.down), 2);
  EXPECT_EQ(value(mlp.gate), mlp.gated() ? 3 : 0);
}

TEST(MlpWeights, KnowsTheFamiliesOfGatedMlps) {
  auto check = [](std::string const& up, std::string const& down, std::string const& gate, std::string_view family,
                  Activation activation) {
    Found const mlp = linear(up, down, gate).find();
    EXPECT_TRUE(mlp.gated()) << up;
    expect_linear(mlp, family, activation);
    EXPECT_EQ(mlp.up_name, up + ".weight");
    EXPECT_EQ(mlp.down_name, down + ".weight");
  };
  check("model.layers.0.mlp.up_proj", "model.layers.0.mlp.down_proj", "model.layers.0.mlp.gate_proj", "llama",
        Activation::kSilu);
  check("layers.0.feed_forward.w3", "layers.0.feed_forward.w2", "layers.0.feed_forward.w1", "llama", Activation::kSilu);
  check("encoder.block.0.layer.1.DenseReluDense.wi_1", "encoder.block.0.layer.1.DenseReluDense.wo",
        "encoder.block.0.layer.1.DenseReluDense.wi_0", "t5", Activation::kGeluTanh);
}

TEST(MlpWeights, KnowsTheFamiliesOfPlainMlps) {
  auto check = [](std::string const& up, std::string const& down, std::string_view family, Activation activation) {
    Found const mlp = linear(up, down).find();
    EXPECT_FALSE(mlp.gated()) << up;
    expect_linear(mlp, family, activation);
  };
  check("gpt_neox.layers.0.mlp.dense_h_to_4h", "gpt_neox.layers.0.mlp.dense_4h_to_h", "neox", Activation::kGelu);
  check("transformer.h.0.mlp.dense_h_to_4h", "transformer.h.0.mlp.dense_4h_to_h", "neox", Activation::kGelu);
  check("transformer.h.0.mlp.fc_in", "transformer.h.0.mlp.fc_out", "gptj", Activation::kGeluTanh);
  check("encoder.layer.0.intermediate.dense", "encoder.layer.0.output.dense", "bert", Activation::kGelu);
  check("bert.encoder.layer.0.intermediate.dense", "bert.encoder.layer.0.output.dense", "bert", Activation::kGelu);
  check("vit.encoder.layer.0.intermediate.dense", "vit.encoder.layer.0.output.dense", "bert", Activation::kGelu);
  check("distilbert.transformer.layer.0.ffn.lin1", "distilbert.transformer.layer.0.ffn.lin2", "distilbert",
        Activation::kGelu);
  check("model.decoder.layers.0.fc1", "model.decoder.layers.0.fc2", "opt", Activation::kRelu);
  check("text_model.encoder.layers.0.mlp.fc1", "text_model.encoder.layers.0.mlp.fc2", "vit", Activation::kGelu);
  check("transformer.blocks.0.ffn.up_proj", "transformer.blocks.0.ffn.down_proj", "mpt", Activation::kGelu);
  check("encoder.block.0.layer.1.DenseReluDense.wi", "encoder.block.0.layer.1.DenseReluDense.wo", "t5",
        Activation::kRelu);
  check("decoder.block.0.layer.2.DenseReluDense.wi", "decoder.block.0.layer.2.DenseReluDense.wo", "t5",
        Activation::kRelu);
}

TEST(MlpWeights, TakesBiasesWhereTheyAre) {
  Model model = linear("encoder.layer.0.intermediate.dense", "encoder.layer.0.output.dense");
  model.add("encoder.layer.0.intermediate.dense.bias", 1, kIntermediate);
  model.add("encoder.layer.0.output.dense.bias", 1, kHidden);
  model.add("encoder.layer.0.attention.output.dense.weight", kHidden, kHidden);
  Found const mlp = model.find();
  EXPECT_EQ(value(mlp.up_bias), 3);
  EXPECT_EQ(mlp.up_bias.columns, kIntermediate);
  EXPECT_EQ(value(mlp.down_bias), 4);
  EXPECT_EQ(mlp.down_bias.columns, kHidden);
  EXPECT_FALSE(mlp.gate_bias);
}

TEST(MlpWeights, SplitsPhi3IntoGateAndUp) {
  Model model;
  model.add("model.layers.0.mlp.gate_up_proj.weight", 2 * kIntermediate, kHidden);
  model.add("model.layers.0.mlp.down_proj.weight", kHidden, kIntermediate);
  Checkpoint const checkpoint = model.open();
  MlpWeights const mlp = find_mlp(checkpoint, {});
  EXPECT_EQ(mlp.family, "phi3");
  EXPECT_EQ(mlp.intermediate, kIntermediate);
  EXPECT_EQ(mlp.gate.rows, kIntermediate);
  EXPECT_EQ(mlp.gate.data, checkpoint.tensor("model.layers.0.mlp.gate_up_proj.weight").data);
  EXPECT_EQ(mlp.up.data, mlp.gate.row(kIntermediate));
  EXPECT_EQ(mlp.up.rows, kIntermediate);
}

TEST(MlpWeights, TellsGpt2FromStarCoderByTheBias) {
  auto model = [](int64_t up_rows, int64_t up_columns) {
    Model m;
    m.add("h.0.mlp.c_fc.weight", up_rows, up_columns).add("h.0.mlp.c_proj.weight", up_columns, up_rows);
    m.add("h.0.mlp.c_fc.bias", 1, kIntermediate).add("h.0.mlp.c_proj.bias", 1, kHidden);
    return m;
  };
  Found const gpt2 = model(kHidden, kIntermediate).find();
  EXPECT_EQ(gpt2.layout, WeightLayout::kInOut);
  EXPECT_EQ(gpt2.hidden, kHidden);
  EXPECT_EQ(gpt2.intermediate, kIntermediate);
  EXPECT_EQ(gpt2.up.rows, kHidden);
  EXPECT_EQ(gpt2.down.rows, kIntermediate);
  EXPECT_EQ(gpt2.activation, Activation::kGeluTanh);
  Found const starcoder = model(kIntermediate, kHidden).find();
  EXPECT_EQ(starcoder.layout, WeightLayout::kOutIn);
  EXPECT_EQ(starcoder.hidden, kHidden);
}

TEST(MlpWeights, ReadsTheActivationFromTheConfiguration) {
  auto activation = [](std::string_view config) {
    return linear("encoder.layer.0.intermediate.dense", "encoder.layer.0.output.dense")
        .config(config)
        .find()
        .activation;
  };
  EXPECT_EQ(activation(R"({"hidden_act":"relu"})"), Activation::kRelu);
  EXPECT_EQ(activation(R"({"hidden_act":"quick_gelu"})"), Activation::kQuickGelu);
  EXPECT_EQ(activation(R"({"activation_function":"gelu_new"})"), Activation::kGeluTanh);
  EXPECT_EQ(activation(R"({"feed_forward_proj":"gated-gelu"})"), Activation::kGeluTanh);
  EXPECT_EQ(activation(R"({"hidden_activation":null,"hidden_act":"silu"})"), Activation::kSilu);
  EXPECT_EQ(activation(R"({"model_type":"gemma","hidden_act":"gelu"})"), Activation::kGeluTanh);
  EXPECT_EQ(activation(R"({"text_config":{"hidden_act":"relu"}})"), Activation::kRelu);
  EXPECT_EQ(activation(R"({"text_config":7})"), Activation::kGelu);
  EXPECT_EQ(activation(R"([])"), Activation::kGelu);
  EXPECT_HAS(invalid([&] { activation(R"({"hidden_act":"relu2"})"); }), "relu2");
  EXPECT_HAS(invalid([&] { activation(R"({"hidden_act")"); }), "config.json");
  MlpChoice choice;
  choice.activation = Activation::kSilu;
  EXPECT_EQ(linear("encoder.layer.0.intermediate.dense", "encoder.layer.0.output.dense")
                .config(R"({"hidden_act":"relu2"})")
                .find(choice)
                .activation,
            Activation::kSilu);
}

TEST(MlpWeights, KnowsGemmaByItsNorm) {
  Model model = linear("model.layers.0.mlp.up_proj", "model.layers.0.mlp.down_proj", "model.layers.0.mlp.gate_proj");
  model.add("model.layers.0.pre_feedforward_layernorm.weight", 1, kHidden);
  EXPECT_EQ(model.find().activation, Activation::kGeluTanh);
}

TEST(MlpWeights, FindsTheLayerAskedFor) {
  Model model = linear("model.decoder.layers.0.fc1", "model.decoder.layers.0.fc2");
  model.add("model.decoder.layers.11.fc1.weight", kIntermediate, kHidden);
  model.add("model.decoder.layers.11.fc2.weight", kHidden, kIntermediate);
  MlpChoice choice;
  choice.layer = 11;
  EXPECT_EQ(value(model.find(choice).up), 3);
  choice.layer = 1;
  EXPECT_HAS(invalid([&] { model.find(choice); }), "no layer 1; it has \"model.decoder.layers.\" 0, 11");
  choice.layer = -1;
  EXPECT_HAS(invalid([&] { model.find(choice); }), "no layer -1");
}

TEST(MlpWeights, AsksWhichOfTwoStacks) {
  Model model = linear("text_model.encoder.layers.0.mlp.fc1", "text_model.encoder.layers.0.mlp.fc2");
  model.add("vision_model.encoder.layers.0.mlp.fc1.weight", kIntermediate, kHidden);
  model.add("vision_model.encoder.layers.0.mlp.fc2.weight", kHidden, kIntermediate);
  EXPECT_HAS(invalid([&] { model.find(); }), "\"text_model.encoder.layers.\" 0 and \"vision_model.encoder.layers.\" 0");
  MlpChoice choice;
  choice.prefix = "vision";
  EXPECT_EQ(value(model.find(choice).up), 3);
  choice.prefix = "audio";
  EXPECT_HAS(invalid([&] { model.find(choice); }), "begin with \"audio\"");
}

TEST(MlpWeights, TakesExplicitNames) {
  Model model;
  model.add("w1", kIntermediate, kHidden).add("w2", kHidden, kIntermediate).add("v", kIntermediate, kHidden);
  model.add("b", 1, kIntermediate);
  MlpChoice choice;
  choice.up = "w1", choice.down = "w2";
  Found mlp = model.find(choice);
  EXPECT_EQ(mlp.family, "explicit");
  EXPECT_EQ(mlp.activation, Activation::kGelu);
  EXPECT_FALSE(mlp.up_bias);
  choice.gate = "v", choice.up_bias = "b";
  mlp = model.find(choice);
  EXPECT_EQ(value(mlp.gate), 3);
  EXPECT_EQ(value(mlp.up_bias), 4);
  EXPECT_EQ(mlp.activation, Activation::kSilu);

  choice = {};
  choice.up = "w1", choice.down = "w2", choice.layout = WeightLayout::kInOut;
  mlp = model.find(choice);
  EXPECT_EQ(mlp.hidden, kIntermediate);
  EXPECT_EQ(mlp.intermediate, kHidden);

  choice = {};
  choice.gate_up = "w1", choice.down = "half";
  choice.layout = WeightLayout::kInOut;
  model.add("half", kHidden / 2, kIntermediate);
  mlp = model.find(choice);
  EXPECT_EQ(mlp.gate.columns, kHidden / 2);
  EXPECT_EQ(mlp.up.columns, kHidden / 2);
}

TEST(MlpWeights, RefusesHalfAnMlp) {
  Model model;
  model.add("w1", kIntermediate, kHidden).add("w2", kHidden, kIntermediate);
  auto refused = [&](MlpChoice const& choice) { return invalid([&] { model.find(choice); }); };
  MlpChoice choice;
  choice.up = "w1";
  EXPECT_HAS(refused(choice), "make no MLP");
  choice.down = "w2", choice.gate_up = "w1";
  EXPECT_HAS(refused(choice), "make no MLP");
  choice.gate_up = "", choice.down = "w3";
  EXPECT_HAS(refused(choice), "no tensor \"w3\"");
  EXPECT_HAS(refused({}), "under names that FLUX knows");
}

TEST(MlpWeights, SaysWhichTensorDoesNotFit) {
  auto model = [] {
    return linear("model.layers.0.mlp.up_proj", "model.layers.0.mlp.down_proj", "model.layers.0.mlp.gate_proj");
  };
  auto refused = [](Model const& m) { return invalid([&] { m.find(); }); };
  EXPECT_HAS(
      refused(model().add("model.layers.0.mlp.down_proj.weight", kIntermediate, kHidden)),
      "tensor \"model.layers.0.mlp.down_proj.weight\" is F32 [6, 4]; expected is [4, 6] (hidden 4, intermediate 6, "
      "from \"model.layers.0.mlp.up_proj.weight\")");
  EXPECT_HAS(refused(model().add("model.layers.0.mlp.gate_proj.weight", 1, kHidden)), "is F32 [4]; expected is [6, 4]");
  EXPECT_HAS(refused(model().add("model.layers.0.mlp.up_proj.bias", 1, 5)), "is F32 [5]; expected is [6]");
  EXPECT_HAS(refused(model().add("model.layers.0.mlp.up_proj.weight", 1, kHidden)), "expected is a matrix");
  EXPECT_HAS(refused(model().add("model.layers.0.mlp.down_proj.weight", kHidden, kIntermediate, DType::kBF16)),
             "expected is fp32 as of");
  Model missing;
  missing.add("model.layers.0.mlp.up_proj.weight", kIntermediate, kHidden);
  EXPECT_HAS(refused(missing), "no tensor \"model.layers.0.mlp.gate_proj.weight\"");
  Model odd;
  odd.add("model.layers.0.mlp.gate_up_proj.weight", 5, kHidden);
  EXPECT_HAS(refused(odd), "same size");
}

}  // namespace
}  // namespace flux
