// Files that the formats' own libraries wrote (test/fuzz/make_corpus.py), whose elements count up from 0.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>

#include "error_of.h"
#include "io/checkpoint.h"
#include "io/mlp_weights.h"
#include "io/npy.h"
#include "io/owned_tensor.h"

namespace flux {
namespace {

std::filesystem::path corpus(std::string_view format) {
  return std::filesystem::path(FLUX_SOURCE_DIR) / "test" / "fuzz" / "corpus" / format;
}

/// Small whole numbers are exact in all four types.
double element(Tensor const& tensor, int64_t index) {
  auto const* const at = static_cast<std::byte const*>(tensor.data) + index * size_of(tensor.dtype);
  uint16_t half = 0;
  float single = 0;
  double value = 0;
  switch (tensor.dtype) {
    case DType::kF64: std::memcpy(&value, at, sizeof value); return value;
    case DType::kF32: std::memcpy(&single, at, sizeof single); return static_cast<double>(single);
    case DType::kBF16:
      std::memcpy(reinterpret_cast<std::byte*>(&single) + 2, at, 2);
      return static_cast<double>(single);
    case DType::kF16:
      std::memcpy(&half, at, sizeof half);
      return half == 0 ? 0 : std::ldexp(1024 + (half & 0x3ff), (half >> 10) - 25);
    case DType::kI8:
    case DType::kF8: break;  // are not read
  }
  return -1;
}

void expect_counting(Tensor const& tensor, DType dtype, int64_t rows, int64_t columns) {
  EXPECT_EQ(name(tensor.dtype), name(dtype));
  ASSERT_EQ(tensor.rows, rows);
  ASSERT_EQ(tensor.columns, columns);
  for (int64_t i = 0; i < rows * columns; ++i) EXPECT_EQ(element(tensor, i), static_cast<double>(i));
}

TEST(Corpus, NumpysFilesAreRead) {
  auto check = [](std::string_view file, DType dtype, int64_t rows, int64_t columns) {
    SCOPED_TRACE(file);
    expect_counting(NpyFile(corpus("npy") / file).tensor(), dtype, rows, columns);
  };
  check("f64.npy", DType::kF64, 2, 3);
  check("f32.npy", DType::kF32, 2, 3);
  check("f32_format2.npy", DType::kF32, 2, 3);
  check("f16_vector.npy", DType::kF16, 1, 5);
  check("bf16.npy", DType::kBF16, 2, 3);
  check("f32_scalar.npy", DType::kF32, 1, 1);
  check("f32_cube.npy", DType::kF32, 4, 2);
  check("f32_empty.npy", DType::kF32, 0, 4);
}

TEST(Corpus, NumpysOtherFilesAreRefused) {
  auto refused = [](std::string_view file) { return invalid([&] { NpyFile(corpus("npy") / file); }); };
  EXPECT_HAS(refused("refused_fortran.npy"), "ascontiguousarray");
  EXPECT_HAS(refused("refused_integers.npy"), "\"<i4\"");
  EXPECT_HAS(refused("refused_big_endian.npy"), "\">f4\"");
  EXPECT_HAS(refused("refused_structure.npy"), "damaged .npy header");
}

TEST(Corpus, SafetensorsFilesAreRead) {
  Checkpoint const checkpoint(corpus("safetensors") / "dtypes.safetensors");
  EXPECT_EQ(checkpoint.tensors().size(), 6u);
  expect_counting(checkpoint.tensor("f64"), DType::kF64, 1, 2);
  expect_counting(checkpoint.tensor("f16"), DType::kF16, 2, 2);
  expect_counting(checkpoint.tensor("bf16"), DType::kBF16, 2, 3);
  expect_counting(checkpoint.tensor("scalar"), DType::kF32, 1, 1);
  EXPECT_EQ(checkpoint.at("mask").describe(), "BOOL [3]");
  EXPECT_HAS(error_of(ErrorKind::kUnsupported, [&] { checkpoint.tensor("ids"); }), "\"ids\" is I64 [1, 2]");
  EXPECT_TRUE(Checkpoint(corpus("safetensors") / "no_tensors.safetensors").tensors().empty());
  EXPECT_EQ(Checkpoint(corpus("safetensors") / "no_elements.safetensors").tensor("a").columns, 4);
}

TEST(Corpus, AnMlpIsFound) {
  Checkpoint const checkpoint(corpus("safetensors") / "mlp.safetensors");
  MlpWeights const mlp = find_mlp(checkpoint, {});
  EXPECT_EQ(mlp.family, "gpt2");
  EXPECT_EQ(mlp.layout, WeightLayout::kInOut);
  EXPECT_EQ(mlp.hidden, 2);
  EXPECT_EQ(mlp.intermediate, 3);
  expect_counting(copy_of(mlp.up), DType::kF32, 2, 3);
  expect_counting(copy_of(mlp.down), DType::kF32, 3, 2);
  expect_counting(mlp.up_bias, DType::kF32, 1, 3);
  EXPECT_FALSE(mlp.down_bias);
}

}  // namespace
}  // namespace flux
