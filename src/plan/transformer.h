#pragma once
// The sizes of a transformer, and the operators of one of its layers.
#include <cstdint>
#include <string>
#include <vector>

#include "plan/problem.h"

namespace flux {

struct Transformer {
  std::string name;
  int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, ffn = 0, vocabulary = 0;
  bool gated = false;  ///< the MLP has a gate beside up

  int64_t head() const { return hidden / heads; }
  int64_t qkv() const { return (heads + 2 * kv_heads) * head(); }
  int64_t up() const { return gated ? 2 * ffn : ffn; }
  double layer_parameters() const {
    return static_cast<double>(hidden) * static_cast<double>(qkv() + hidden + up() + ffn);
  }
  double parameters() const {
    return static_cast<double>(layers) * layer_parameters() + 2.0 * static_cast<double>(hidden * vocabulary);
  }
};

/// gpt3-175b, llama2-70b, llama3-8b, llama3-70b, llama3-405b: sizes as their papers and configurations give them.
std::vector<Transformer> const& named_transformers();
/// Throws Error{kInvalid} naming those there are.
Transformer find_transformer(std::string_view name);

/// The four products of a layer on m rows; the others' are alike: column-parallel qkv and up, row-parallel o and down.
struct LayerOperators {
  Problem qkv, o, up, down;
};
LayerOperators layer_operators(Transformer const& model, int64_t m, int ranks, int nodes = 1);

}  // namespace flux
