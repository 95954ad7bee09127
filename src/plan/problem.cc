#include "flux/problem.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "tile/place.h"

namespace flux {
namespace {

template <class T, size_t N>
T parse(std::string_view text, std::string_view what, std::array<std::pair<std::string_view, T>, N> const& words,
        size_t shown = N) {
  std::string allowed;
  for (size_t i = 0; i < N; ++i) {
    if (words[i].first == text) return words[i].second;
    if (i < shown) allowed += fmt::format("{}{}", i ? ", " : "", words[i].first);
  }
  throw Error(ErrorKind::kInvalid, fmt::format("{} '{}' is unknown; allowed are {}", what, text, allowed));
}

}  // namespace

std::string_view name(Op op) {
  switch (op) {
    case Op::kAllGatherGemm: return "ag_gemm";
    case Op::kGemmReduceScatter: return "gemm_rs";
    case Op::kGemmAllReduce: return "gemm_ar";
  }
  return "?";
}
Op parse_op(std::string_view text) {
  return parse<Op, 3>(
      text, "operator",
      {{{"ag_gemm", Op::kAllGatherGemm}, {"gemm_rs", Op::kGemmReduceScatter}, {"gemm_ar", Op::kGemmAllReduce}}});
}

DType parse_dtype(std::string_view text) {
  return parse<DType, 14>(text, "dtype",
                          {{{"fp32", DType::kF32},
                            {"bf16", DType::kBF16},
                            {"fp16", DType::kF16},
                            {"fp64", DType::kF64},
                            {"int8", DType::kI8},
                            {"fp8", DType::kF8},
                            {"float32", DType::kF32},
                            {"bfloat16", DType::kBF16},
                            {"float16", DType::kF16},
                            {"float64", DType::kF64},
                            {"fp8_e4m3", DType::kF8},
                            {"float8_e4m3", DType::kF8},
                            {"float8_e4m3fn", DType::kF8},
                            {"e4m3", DType::kF8}}},
                          6);
}

std::string_view name(WeightLayout layout) { return layout == WeightLayout::kOutIn ? "[out,in]" : "[in,out]"; }
WeightLayout parse_weight_layout(std::string_view text) {
  return parse<WeightLayout, 4>(text, "weight layout",
                                {{{"[out,in]", WeightLayout::kOutIn},
                                  {"[in,out]", WeightLayout::kInOut},
                                  {"out_in", WeightLayout::kOutIn},
                                  {"in_out", WeightLayout::kInOut}}});
}

std::string_view name(Activation activation) {
  switch (activation) {
    case Activation::kNone: return "none";
    case Activation::kRelu: return "relu";
    case Activation::kGelu: return "gelu";
    case Activation::kGeluTanh: return "gelu_tanh";
    case Activation::kQuickGelu: return "quick_gelu";
    case Activation::kSilu: return "silu";
  }
  return "?";
}
Activation parse_activation(std::string_view text) {
  return parse<Activation, 13>(text, "activation",
                               {{{"none", Activation::kNone},
                                 {"relu", Activation::kRelu},
                                 {"gelu", Activation::kGelu},
                                 {"gelu_tanh", Activation::kGeluTanh},
                                 {"quick_gelu", Activation::kQuickGelu},
                                 {"silu", Activation::kSilu},
                                 {"gelu_new", Activation::kGeluTanh},
                                 {"gelu_pytorch_tanh", Activation::kGeluTanh},
                                 {"gelu_fast", Activation::kGeluTanh},
                                 {"swish", Activation::kSilu},
                                 {"gelu_python", Activation::kGelu},
                                 {"gated-gelu", Activation::kGeluTanh} /* T5 means the approximation */,
                                 {"gated-silu", Activation::kSilu}}},
                               6);
}

Part part_of_rows(int64_t m, int rank, int ranks) {
  Shards const s{m, ranks, 1};
  return {s.begin(rank), s.size(rank)};
}
Part part_of_columns(int64_t total, int rank, int ranks, int64_t unit) {
  Shards const s{total, ranks, unit};
  return {s.begin(rank), s.size(rank)};
}

}  // namespace flux
