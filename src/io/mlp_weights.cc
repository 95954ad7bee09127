#include "io/mlp_weights.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "io/mlp_family.h"
#include "io/model_config.h"
#include "io/quote.h"
#include "io/shape.h"

namespace flux {
namespace {

/// The names of one MLP's tensors; empty ones it does not have.
MlpChoice names_of(Checkpoint const& checkpoint, MlpLayer const& layer) {
  std::string const stem = layer.stack + std::to_string(layer.number);
  auto weight = [&](std::string_view part) { return part.empty() ? "" : fmt::format("{}{}.weight", stem, part); };
  auto bias = [&](std::string_view part) {
    std::string const name = fmt::format("{}{}.bias", stem, part);
    return !part.empty() && checkpoint.contains(name) ? name : "";
  };
  MlpFamily const& family = *layer.family;
  MlpChoice names;
  (family.fused ? names.gate_up : names.up) = weight(family.up);
  names.gate = weight(family.gate), names.down = weight(family.down);
  names.up_bias = bias(family.up), names.gate_bias = bias(family.gate), names.down_bias = bias(family.down);
  names.layout = family.layout;
  // GPT-2's names with torch.nn.Linear's layout (StarCoder): the bias tells.
  if (family.layout == WeightLayout::kInOut && !names.up_bias.empty()) {
    auto const& shape = checkpoint.at(names.up).shape;
    auto const& bias_shape = checkpoint.at(names.up_bias).shape;
    if (shape.size() == 2 && shape[0] != shape[1] && bias_shape == std::vector{shape[0]})
      names.layout = WeightLayout::kOutIn;
  }
  return names;
}

/// Takes tensors out of a checkpoint and insists on their shapes and on one dtype.
class Taker {
 public:
  explicit Taker(Checkpoint const& checkpoint) : checkpoint_(checkpoint) {}

  std::vector<int64_t> const& shape(std::string const& name) const { return checkpoint_.at(name).shape; }

  Tensor take(std::string const& name, std::vector<int64_t> const& expected, std::string_view why) {
    if (name.empty()) return {};
    StoredTensor const& stored = checkpoint_.at(name);
    if (stored.shape != expected) refuse(name, fmt::format("expected is {}{}", shape_text(expected), why));
    Tensor const tensor = checkpoint_.tensor(name);
    if (first_.empty()) first_ = name, dtype_ = tensor.dtype;
    if (tensor.dtype != dtype_) refuse(name, fmt::format("expected is {} as of {}", flux::name(dtype_), quote(first_)));
    return tensor;
  }
  [[noreturn]] void refuse(std::string const& name, std::string const& expected) const {
    throw Error(ErrorKind::kInvalid,
                fmt::format("tensor {} is {}; {}", quote(name), checkpoint_.at(name).describe(), expected));
  }

 private:
  Checkpoint const& checkpoint_;
  std::string first_;
  DType dtype_ = DType::kF32;
};

/// Rows (or columns, where weights are [in, out]) `from` to `from + count` of a weight.
Tensor outputs(Tensor const& weight, bool in_out, int64_t from, int64_t count) {
  Tensor part = weight;
  if (!in_out) {
    part.data = weight.row(from), part.rows = count;
  } else {
    part.data = static_cast<std::byte*>(weight.data) + from * size_of(weight.dtype), part.columns = count;
  }
  return part;
}

MlpWeights assemble(Checkpoint const& checkpoint, MlpChoice const& names) {
  Taker taker(checkpoint);
  MlpWeights mlp;
  bool const fused = !names.gate_up.empty();
  mlp.up_name = fused ? names.gate_up : names.up, mlp.down_name = names.down, mlp.layout = names.layout;
  bool const in_out = names.layout == WeightLayout::kInOut;
  auto const& shape = taker.shape(mlp.up_name);
  if (shape.size() != 2) taker.refuse(mlp.up_name, "expected is a matrix");
  int64_t const outs = shape[in_out ? 1 : 0];
  mlp.hidden = shape[in_out ? 0 : 1];
  if (fused && outs % 2 != 0) taker.refuse(mlp.up_name, "expected are gate and up of the same size in it");
  mlp.intermediate = fused ? outs / 2 : outs;

  auto turned = [&](int64_t out, int64_t in) { return in_out ? std::vector{in, out} : std::vector{out, in}; };
  std::string const why =
      fmt::format(" (hidden {}, intermediate {}, from {})", mlp.hidden, mlp.intermediate, quote(mlp.up_name));
  Tensor const up = taker.take(mlp.up_name, shape, why), up_bias = taker.take(names.up_bias, {outs}, why);
  mlp.up = up, mlp.up_bias = up_bias;
  if (fused) {
    mlp.gate = outputs(up, in_out, 0, mlp.intermediate);
    mlp.up = outputs(up, in_out, mlp.intermediate, mlp.intermediate);
    if (up_bias) {
      mlp.gate_bias = outputs(up_bias, true, 0, mlp.intermediate);
      mlp.up_bias = outputs(up_bias, true, mlp.intermediate, mlp.intermediate);
    }
  } else {
    mlp.gate = taker.take(names.gate, turned(mlp.intermediate, mlp.hidden), why);
    mlp.gate_bias = taker.take(names.gate_bias, {mlp.intermediate}, why);
  }
  mlp.down = taker.take(names.down, turned(mlp.hidden, mlp.intermediate), why);
  mlp.down_bias = taker.take(names.down_bias, {mlp.hidden}, why);
  return mlp;
}

bool names_tensors(MlpChoice const& choice) {
  for (auto const* name :
       {&choice.up, &choice.gate, &choice.gate_up, &choice.down, &choice.up_bias, &choice.gate_bias, &choice.down_bias})
    if (!name->empty()) return true;
  return false;
}

void check_explicit(MlpChoice const& choice) {
  bool const fused = !choice.gate_up.empty();
  if (choice.down.empty() || choice.up.empty() != fused || (fused && !(choice.gate + choice.gate_bias).empty()) ||
      (choice.gate.empty() && !choice.gate_bias.empty()))
    throw Error(
        ErrorKind::kInvalid,
        "tensor names were given that make no MLP; allowed are up and down, with gate if it is gated, or gate_up "
        "and down, each with its bias");
}

/// Gemma shares Llama's names but not its activation, and from its second version on has a norm of its own.
Activation usual_activation(Checkpoint const& checkpoint, MlpLayer const& layer) {
  std::string const norm = fmt::format("{}{}.pre_feedforward_layernorm.weight", layer.stack, layer.number);
  return checkpoint.contains(norm) ? Activation::kGeluTanh : layer.family->activation;
}

}  // namespace

MlpWeights find_mlp(Checkpoint const& checkpoint, MlpChoice const& choice) {
  MlpWeights mlp;
  Activation usual;
  if (names_tensors(choice)) {
    check_explicit(choice);
    mlp = assemble(checkpoint, choice);
    mlp.family = "explicit";
    usual = mlp.gated() ? Activation::kSilu : Activation::kGelu;
  } else {
    MlpLayer const layer = find_layer(checkpoint, choice.prefix, choice.layer);
    mlp = assemble(checkpoint, names_of(checkpoint, layer));
    mlp.family = layer.family->name;
    usual = usual_activation(checkpoint, layer);
  }
  mlp.activation = choice.activation ? *choice.activation : configured_activation(checkpoint.folder()).value_or(usual);
  return mlp;
}

}  // namespace flux
