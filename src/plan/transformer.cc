#include "plan/transformer.h"

#include <fmt/format.h>

#include "flux/error.h"

namespace flux {

std::vector<Transformer> const& named_transformers() {
  // name, hidden, layers, heads, heads of k and v, width of the MLP, vocabulary, gated
  static std::vector<Transformer> const all = {
      {"gpt3-175b", 12288, 96, 96, 96, 49152, 51200, false},    {"llama2-70b", 8192, 80, 64, 8, 28672, 32000, true},
      {"llama3-8b", 4096, 32, 32, 8, 14336, 128256, true},      {"llama3-70b", 8192, 80, 64, 8, 28672, 128256, true},
      {"llama3-405b", 16384, 126, 128, 8, 53248, 128256, true},
  };
  return all;
}

Transformer find_transformer(std::string_view name) {
  std::string known;
  for (Transformer const& model : named_transformers()) {
    if (model.name == name) return model;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", model.name);
  }
  throw Error(ErrorKind::kInvalid, fmt::format("model '{}' is unknown; there are {}", name, known));
}

LayerOperators layer_operators(Transformer const& model, int64_t m, int ranks, int nodes) {
  auto problem = [&](Op op, int64_t n, int64_t k) {
    Problem p{op, m, n, k, ranks};
    p.nodes = nodes;
    return p;
  };
  auto gather = [&](int64_t n) { return problem(Op::kAllGatherGemm, n, model.hidden); };
  auto sum = [&](int64_t k) { return problem(Op::kGemmReduceScatter, model.hidden, k); };
  return {gather(model.qkv()), sum(model.hidden), gather(model.up()), sum(model.ffn)};
}

}  // namespace flux
