#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "flux/problem.h"
#include "io/checkpoint.h"

namespace flux {

/// Which MLP of a checkpoint is meant.
struct MlpChoice {
  int64_t layer = 0;
  /// Where one number means several layers (an encoder's and a decoder's), the beginning of the wanted names.
  std::string prefix;
  /// Explicit tensor names: `up` (or `gate_up`, gate rows first) and `down` replace the search; what is not named then
  /// is not there.
  std::string up, gate, gate_up, down, up_bias, gate_bias, down_bias;
  WeightLayout layout = WeightLayout::kOutIn;  ///< of explicitly named weights
  std::optional<Activation> activation;        ///< overrides the checkpoint's
};

/// An MLP: down(activation(up(x))), or gated: down(activation(gate(x)) * up(x)). All tensors view the checkpoint and
/// live as long as it (unaligned where its file is: see aligned() in owned_tensor.h); all have one dtype. `layout` says
/// how the weights are stored:
///   kOutIn  up, gate [intermediate, hidden], down [hidden, intermediate]   (torch.nn.Linear)
///   kInOut  up, gate [hidden, intermediate], down [intermediate, hidden]   (GPT-2's Conv1D)
struct MlpWeights {
  Tensor up, down;
  Tensor gate;                           ///< none if the MLP is not gated
  Tensor up_bias, gate_bias, down_bias;  ///< one row each, or none
  WeightLayout layout = WeightLayout::kOutIn;
  Activation activation = Activation::kGelu;
  int64_t hidden = 0, intermediate = 0;
  std::string family;              ///< "llama", "gpt2", ..., or "explicit"
  std::string up_name, down_name;  ///< of the tensors, for people to read

  bool gated() const { return static_cast<bool>(gate); }
};

/// Finds the MLP in the checkpoint, by Hugging Face names. The activation is the one `config.json` beside the
/// checkpoint names, else the family's. Throws Error{kInvalid}, one sentence, if the layer is not there (naming those
/// that are), if no family fits, or if a tensor is missing or has the wrong shape or dtype.
MlpWeights find_mlp(Checkpoint const& checkpoint, MlpChoice const& choice);

}  // namespace flux
