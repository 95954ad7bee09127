#include "io/mlp_family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "io/quote.h"

namespace flux {
namespace {

constexpr WeightLayout kOutIn = WeightLayout::kOutIn, kInOut = WeightLayout::kInOut;
constexpr MlpFamily kFamilies[] = {
    {"llama", ".mlp.up_proj", ".mlp.gate_proj", ".mlp.down_proj", false, kOutIn, Activation::kSilu},
    {"llama", ".feed_forward.w3", ".feed_forward.w1", ".feed_forward.w2", false, kOutIn, Activation::kSilu},
    {"phi3", ".mlp.gate_up_proj", "", ".mlp.down_proj", true, kOutIn, Activation::kSilu},
    {"gpt2", ".mlp.c_fc", "", ".mlp.c_proj", false, kInOut, Activation::kGeluTanh},
    {"gptj", ".mlp.fc_in", "", ".mlp.fc_out", false, kOutIn, Activation::kGeluTanh},
    {"neox", ".mlp.dense_h_to_4h", "", ".mlp.dense_4h_to_h", false, kOutIn, Activation::kGelu},
    {"mpt", ".ffn.up_proj", "", ".ffn.down_proj", false, kOutIn, Activation::kGelu},
    {"bert", ".intermediate.dense", "", ".output.dense", false, kOutIn, Activation::kGelu},
    {"distilbert", ".ffn.lin1", "", ".ffn.lin2", false, kOutIn, Activation::kGelu},
    {"opt", ".fc1", "", ".fc2", false, kOutIn, Activation::kRelu},
    {"vit", ".mlp.fc1", "", ".mlp.fc2", false, kOutIn, Activation::kGelu},
    {"t5", ".layer.1.DenseReluDense.wi", "", ".layer.1.DenseReluDense.wo", false, kOutIn, Activation::kRelu},
    {"t5", ".layer.2.DenseReluDense.wi", "", ".layer.2.DenseReluDense.wo", false, kOutIn, Activation::kRelu},
    {"t5", ".layer.1.DenseReluDense.wi_1", ".layer.1.DenseReluDense.wi_0", ".layer.1.DenseReluDense.wo", false, kOutIn,
     Activation::kGeluTanh},
    {"t5", ".layer.2.DenseReluDense.wi_1", ".layer.2.DenseReluDense.wi_0", ".layer.2.DenseReluDense.wo", false, kOutIn,
     Activation::kGeluTanh},
};

/// `name` as a layer of `family`, if it is that layer's up tensor.
std::optional<MlpLayer> match(MlpFamily const& family, std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  if (!name.ends_with(kWeight)) return std::nullopt;
  name.remove_suffix(kWeight.size());
  if (!name.ends_with(family.up)) return std::nullopt;
  name.remove_suffix(family.up.size());
  size_t const digits = name.find_last_not_of("0123456789") + 1;  // 0 if there are only digits
  std::string_view const stack = name.substr(0, digits), number = name.substr(digits);
  int64_t layer = 0;
  auto const [end, error] = std::from_chars(number.data(), number.data() + number.size(), layer);
  bool const whole = error == std::errc() && end == number.data() + number.size() && std::to_string(layer) == number;
  if (!whole || (!stack.empty() && stack.back() != '.')) return std::nullopt;
  return MlpLayer{&family, std::string(stack), layer};
}

std::vector<MlpLayer> layers_of(Checkpoint const& checkpoint, std::string_view prefix) {
  std::vector<MlpLayer> found;
  for (auto const& entry : checkpoint.tensors()) {
    if (!entry.first.starts_with(prefix)) continue;
    for (MlpFamily const& family : kFamilies)
      if (auto layer = match(family, entry.first)) found.push_back(std::move(*layer));
  }
  return found;
}

/// `"model.layers." 0 to 31`, or each number where some are missing.
std::string layers_text(std::vector<MlpLayer> const& found) {
  std::map<std::string, std::set<int64_t>> stacks;
  for (MlpLayer const& layer : found) stacks[layer.stack].insert(layer.number);
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

}  // namespace

MlpLayer find_layer(Checkpoint const& checkpoint, std::string_view prefix, int64_t number) {
  auto fail = [&](std::string const& what) {
    throw Error(ErrorKind::kInvalid, quote(checkpoint.path().native()) + what);
  };
  auto const all = layers_of(checkpoint, prefix);
  if (all.empty())
    fail(fmt::format(" holds no MLP under names that FLUX knows{}; name its tensors (up or gate_up, and down)",
                     prefix.empty() ? "" : " and that begin with " + quote(prefix)));
  std::vector<MlpLayer> wanted;
  for (MlpLayer const& layer : all)
    if (layer.number == number) wanted.push_back(layer);
  if (wanted.empty()) fail(fmt::format(" has no layer {}; it has {}", number, layers_text(all)));
  if (wanted.size() > 1)
    fail(fmt::format(" has layer {} more than once, as {}; give the prefix of the one you mean", number,
                     layers_text(wanted)));
  return wanted[0];
}

}  // namespace flux
