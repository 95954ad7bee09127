#include "io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "error_of.h"
#include "io/owned_tensor.h"
#include "temporary_folder.h"

namespace flux {
namespace {

std::string safetensors(std::string_view header, std::string_view data) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i));
  return file + std::string(header) + std::string(data);
}

StoredTensors parse(std::string const& file) { return parse_safetensors(std::as_bytes(std::span(file)), "x"); }

std::string refused(std::string_view header, size_t data_bytes) {
  return invalid([&] { parse(safetensors(header, std::string(data_bytes, 'x'))); });
}

TEST(Safetensors, ReadsAllItsDtypesAndMultipliesFour) {
  std::string const file = safetensors(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("ids":{"dtype":"I64","shape":[2],"data_offsets":[8,24]},"b":{"data_offsets":[24,28],"shape":[2],"dtype":"BF16"},)"
      R"("nibbles":{"dtype":"F4","shape":[2,3],"data_offsets":[28,31]},"none":{"dtype":"F16","shape":[0,7],"data_offsets":[31,31]}}  )",
      std::string("0123456789012345678901234567890"));
  StoredTensors const tensors = parse(file);
  ASSERT_EQ(tensors.size(), 5u);
  Tensor const a = tensors.at("a").tensor();
  EXPECT_EQ(a.dtype, DType::kF32);
  EXPECT_EQ(a.rows, 2);
  EXPECT_EQ(a.columns, 1);
  EXPECT_EQ(std::memcmp(a.data, "01234567", 8), 0);
  Tensor const b = tensors.at("b").tensor();
  EXPECT_EQ(b.dtype, DType::kBF16);
  EXPECT_EQ(b.rows, 1);
  EXPECT_EQ(b.columns, 2);
  EXPECT_EQ(std::memcmp(b.data, "4567", 4), 0);
  EXPECT_TRUE(tensors.at("none").tensor());
  EXPECT_EQ(tensors.at("ids").describe(), "I64 [2]");
  EXPECT_FALSE(tensors.at("ids").readable());
  EXPECT_HAS(error_of(ErrorKind::kUnsupported, [&] { tensors.at("ids").tensor(); }), "I64");
}

TEST(Safetensors, RefusesLyingSizes) {
  std::string const good =
      safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", std::string(8, 'x'));
  EXPECT_EQ(parse(good).size(), 1u);
  EXPECT_HAS(invalid([&] { parse(good.substr(0, good.size() - 1)); }), "truncated");
  EXPECT_HAS(invalid([&] { parse(good + "x"); }), "describes 8");
  EXPECT_HAS(invalid([&] { parse(good.substr(0, 20)); }), "promises a header");
  EXPECT_HAS(invalid([&] { parse(good.substr(0, 7)); }), "too few");
  EXPECT_HAS(invalid([&] { parse(std::string(8, '\xff') + good.substr(8)); }), "promises a header");
  EXPECT_HAS(refused(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8), "do not agree");
  EXPECT_HAS(refused(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1), "do not agree");
  EXPECT_HAS(refused(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0),
             "do not agree");
  EXPECT_HAS(refused(R"({"a":{"dtype":"F32","shape":[0,9223372036854775807,9],"data_offsets":[0,0]}})", 0),
             "do not agree");
  EXPECT_HAS(refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8), "bytes 8 to 0");
  EXPECT_HAS(refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615]}})", 8),
             "non-negative");
}

TEST(Safetensors, RefusesOverlapsAndGaps) {
  EXPECT_HAS(refused(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                     R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                     6),
             "without overlap");
  EXPECT_HAS(refused(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                     R"("b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})",
                     9),
             "at byte 5 where 4 is expected");
  EXPECT_HAS(refused(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},)"
                     R"("b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                     4),
             "without overlap");
}

TEST(Safetensors, RefusesOtherHeaders) {
  EXPECT_HAS(refused("", 0), "no JSON from byte 1");
  EXPECT_HAS(refused("{", 0), "no JSON");
  EXPECT_HAS(refused("[]", 0), "list where");
  EXPECT_HAS(refused("7", 0), "no table");
  EXPECT_HAS(refused("{} {}", 0), "no JSON");
  EXPECT_HAS(refused(R"({"a":7})", 0), "no table");
  EXPECT_HAS(refused(R"({"a":[1]})", 0), "list where");
  EXPECT_HAS(refused(R"({"a":{"b":{"c":1}}})", 0), "nested");
  EXPECT_HAS(refused(R"({"a":{"shape":[[1]]}})", 0), "list where");
  EXPECT_HAS(refused(std::string(1'000'000, '['), 0), "list where");
  EXPECT_HAS(refused(R"({"a":{"dtype":"F32","shape":[]}})", 0), "without dtype");
  EXPECT_HAS(refused(R"({"a":{"dtype":7,"shape":[],"data_offsets":[0,0]}})", 0), "without dtype");
  EXPECT_HAS(refused(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,0]}})", 0), "non-negative integers");
  EXPECT_HAS(refused(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}})", 0), "non-negative integers");
  EXPECT_HAS(refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})", 4), "[begin, end]");
  EXPECT_HAS(refused(R"({"a":{"dtype":"Q7","shape":[1],"data_offsets":[0,4]}})", 4), "BF16");
  EXPECT_HAS(refused(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4), "twice");
  EXPECT_HAS(refused(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],)"
                     R"("data_offsets":[0,0]}})",
                     0),
             "two tensors called");
  std::string many = R"({"a":{"dtype":"F32","shape":[)";
  for (int i = 0; i < 65; ++i) many += i ? ",1" : "1";
  EXPECT_HAS(refused(many + R"(],"data_offsets":[0,4]}})", 4), "at most 64");
}

TEST(Safetensors, WritesWhatItReads) {
  TemporaryFolder folder;
  float matrix_data[] = {1, 2, 9, 3, 4, 9};
  uint16_t row[] = {5, 6, 7};
  double one[] = {8};
  std::map<std::string, Tensor> const tensors = {{"a.bias", matrix(row, DType::kBF16, 1, 3)},
                                                 {"a.weight", {matrix_data, DType::kF32, 2, 2, 3}},
                                                 {"scale", matrix(one, DType::kF64, 1, 1)}};
  write_safetensors(folder / "x.safetensors", tensors);
  std::string const file = bytes_of(folder / "x.safetensors");
  StoredTensors const read = parse(file);
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read.at("a.bias").shape, std::vector<int64_t>{3});
  EXPECT_EQ(read.at("a.weight").shape, (std::vector<int64_t>{2, 2}));
  float const dense[] = {1, 2, 3, 4};
  EXPECT_EQ(std::memcmp(read.at("a.weight").bytes.data(), dense, sizeof dense), 0);
  EXPECT_EQ(std::memcmp(read.at("a.bias").bytes.data(), row, sizeof row), 0);
  EXPECT_EQ(std::memcmp(read.at("scale").bytes.data(), one, sizeof one), 0);
  for (auto const& [name, tensor] : read)
    EXPECT_EQ((tensor.bytes.data() - reinterpret_cast<std::byte const*>(file.data())) % size_of(tensor.tensor().dtype),
              0)
        << name;
}

}  // namespace
}  // namespace flux
