#include "io/mlp_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "io/quote.h"
#include "io/shape.h"

namespace flux {
namespace {

/// How a model family names the tensors of layer N: "<stack>N<up>.weight", with ".bias" beside it where it has one.
struct Family {
  std::string_view name, up, gate, down;
  bool fused = false;  // `up` holds gate and up, gate rows first
  bool in_out = false;
  Activation activation;
};
constexpr Family kFamilies[] = {
    {"llama", ".mlp.up_proj", ".mlp.gate_proj", ".mlp.down_proj", false, false, Activation::kSilu},
    {"llama", ".feed_forward.w3", ".feed_forward.w1", ".feed_forward.w2", false, false, Activation::kSilu},
    {"phi3", ".mlp.gate_up_proj", "", ".mlp.down_proj", true, false, Activation::kSilu},
    {"gpt2", ".mlp.c_fc", "", ".mlp.c_proj", false, true, Activation::kGeluTanh},
    {"gptj", ".mlp.fc_in", "", ".mlp.fc_out", false, false, Activation::kGeluTanh},
    {"neox", ".mlp.dense_h_to_4h", "", ".mlp.dense_4h_to_h", false, false, Activation::kGelu},
    {"mpt", ".ffn.up_proj", "", ".ffn.down_proj", false, false, Activation::kGelu},
    {"bert", ".intermediate.dense", "", ".output.dense", false, false, Activation::kGelu},
    {"distilbert", ".ffn.lin1", "", ".ffn.lin2", false, false, Activation::kGelu},
    {"opt", ".fc1", "", ".fc2", false, false, Activation::kRelu},
    {"vit", ".mlp.fc1", "", ".mlp.fc2", false, false, Activation::kGelu},
    {"t5", ".layer.1.DenseReluDense.wi", "", ".layer.1.DenseReluDense.wo", false, false, Activation::kRelu},
    {"t5", ".layer.2.DenseReluDense.wi", "", ".layer.2.DenseReluDense.wo", false, false, Activation::kRelu},
    {"t5", ".layer.1.DenseReluDense.wi_1", ".layer.1.DenseReluDense.wi_0", ".layer.1.DenseReluDense.wo", false, false,
     Activation::kGeluTanh},
    {"t5", ".layer.2.DenseReluDense.wi_1", ".layer.2.DenseReluDense.wi_0", ".layer.2.DenseReluDense.wo", false, false,
     Activation::kGeluTanh},
};

/// A layer that the checkpoint holds.
struct Found {
  Family const* family;
  std::string stack;  // "model.layers."
  int64_t layer;
};

/// `name` as a layer of `family`, if it is that layer's up tensor.
std::optional<Found> match(Family const& family, std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  if (!name.ends_with(kWeight)) return std::nullopt;
  name.remove_suffix(kWeight.size());
  if (!name.ends_with(family.up)) return std::nullopt;
  name.remove_suffix(family.up.size());
  size_t const digits = name.find_last_not_of("0123456789") + 1;  // 0 if there are only digits
  std::string_view const stack = name.substr(0, digits), number = name.substr(digits);
  int64_t layer = 0;
  auto const [end, error] = std::from_chars(number.data(), number.data() + number.size(), layer);
  bool const whole = error == std::errc() && end == number.data() + number.size();
  if (!whole || (!stack.empty() && stack.back() != '.')) return std::nullopt;
  return Found{&family, std::string(stack), layer};
}

std::vector<Found> layers_of(Checkpoint const& checkpoint, std::string_view prefix) {
  std::vector<Found> found;
  for (auto const& entry : checkpoint.tensors()) {
    if (!entry.first.starts_with(prefix)) continue;
    for (Family const& family : kFamilies)
      if (auto layer = match(family, entry.first)) found.push_back(std::move(*layer));
  }
  return found;
}

/// `"model.layers." 0 to 31`, or each number where some are missing.
std::string layers_text(std::vector<Found> const& found) {
  std::map<std::string, std::set<int64_t>> stacks;
  for (Found const& layer : found) stacks[layer.stack].insert(layer.layer);
  std::vector<std::string> parts;
  for (auto const& [stack, layers] : stacks) {
    int64_t const first = *layers.begin(), last = *layers.rbegin(), count = static_cast<int64_t>(layers.size());
    std::string numbers;
    if (count == 1)
      numbers = fmt::format("{}", first);
    else if (last - first == count - 1)
      numbers = fmt::format("{} to {}", first, last);
    else
      numbers = fmt::format("{}", fmt::join(layers, ", "));
    parts.push_back(fmt::format("{} {}", quote(stack), numbers));
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

Found find_layer(Checkpoint const& checkpoint, MlpChoice const& choice) {
  auto fail = [&](std::string const& what) {
    throw Error(ErrorKind::kInvalid, quote(checkpoint.path().native()) + what);
  };
  auto const all = layers_of(checkpoint, choice.prefix);
  if (all.empty())
    fail(fmt::format(" holds no MLP under names that FLUX knows{}; name its tensors (up or gate_up, and down)",
                     choice.prefix.empty() ? "" : " and that begin with " + quote(choice.prefix)));
  std::vector<Found> wanted;
  for (Found const& layer : all)
    if (layer.layer == choice.layer) wanted.push_back(layer);
  if (wanted.empty()) fail(fmt::format(" has no layer {}; it has {}", choice.layer, layers_text(all)));
  if (wanted.size() > 1)
    fail(fmt::format(" has layer {} more than once, as {}; give the prefix of the one you mean", choice.layer,
                     layers_text(wanted)));
  return wanted[0];
}

/// The names of one MLP's tensors; empty ones it does not have.
MlpChoice names_of(Checkpoint const& checkpoint, Found const& found) {
  std::string const stem = found.stack + std::to_string(found.layer);
  auto weight = [&](std::string_view part) { return part.empty() ? "" : fmt::format("{}{}.weight", stem, part); };
  auto bias = [&](std::string_view part) {
    std::string const name = fmt::format("{}{}.bias", stem, part);
    return !part.empty() && checkpoint.contains(name) ? name : "";
  };
  Family const& family = *found.family;
  MlpChoice names;
  (family.fused ? names.gate_up : names.up) = weight(family.up);
  names.gate = weight(family.gate), names.down = weight(family.down);
  names.up_bias = bias(family.up), names.gate_bias = bias(family.gate), names.down_bias = bias(family.down);
  names.in_out = family.in_out;
  // GPT-2's names with torch.nn.Linear's layout (StarCoder): the bias tells.
  if (family.in_out && !names.up_bias.empty()) {
    auto const& shape = checkpoint.at(names.up).shape;
    auto const& bias_shape = checkpoint.at(names.up_bias).shape;
    if (shape.size() == 2 && shape[0] != shape[1] && bias_shape == std::vector{shape[0]}) names.in_out = false;
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
  mlp.up_name = fused ? names.gate_up : names.up, mlp.down_name = names.down, mlp.in_out = names.in_out;
  auto const& shape = taker.shape(mlp.up_name);
  if (shape.size() != 2) taker.refuse(mlp.up_name, "expected is a matrix");
  int64_t const outs = shape[names.in_out ? 1 : 0];
  mlp.hidden = shape[names.in_out ? 0 : 1];
  if (fused && outs % 2 != 0) taker.refuse(mlp.up_name, "expected are gate and up of the same size in it");
  mlp.intermediate = fused ? outs / 2 : outs;

  auto turned = [&](int64_t out, int64_t in) { return names.in_out ? std::vector{in, out} : std::vector{out, in}; };
  std::string const why =
      fmt::format(" (hidden {}, intermediate {}, from {})", mlp.hidden, mlp.intermediate, quote(mlp.up_name));
  Tensor const up = taker.take(mlp.up_name, shape, why), up_bias = taker.take(names.up_bias, {outs}, why);
  mlp.up = up, mlp.up_bias = up_bias;
  if (fused) {
    mlp.gate = outputs(up, names.in_out, 0, mlp.intermediate);
    mlp.up = outputs(up, names.in_out, mlp.intermediate, mlp.intermediate);
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
Activation usual_activation(Checkpoint const& checkpoint, Found const& found) {
  std::string const norm = fmt::format("{}{}.pre_feedforward_layernorm.weight", found.stack, found.layer);
  return checkpoint.contains(norm) ? Activation::kGeluTanh : found.family->activation;
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
    Found const found = find_layer(checkpoint, choice);
    mlp = assemble(checkpoint, names_of(checkpoint, found));
    mlp.family = found.family->name;
    usual = usual_activation(checkpoint, found);
  }
  mlp.activation = choice.activation ? *choice.activation : configured_activation(checkpoint.folder()).value_or(usual);
  return mlp;
}

}  // namespace flux
