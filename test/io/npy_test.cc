#include "io/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "error_of.h"
#include "io/owned_tensor.h"
#include "temporary_folder.h"

namespace flux {
namespace {

/// A .npy file of the given parts.
std::string npy(std::string header, std::string_view data, int version = 1) {
  std::string file = "\x93NUMPY";
  file += {static_cast<char>(version), 0};
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(header.size() >> (8 * i));
  return file + header + std::string(data);
}

std::string header(std::string_view descr, std::string_view shape, std::string_view fortran = "False") {
  return "{'descr': '" + std::string(descr) + "', 'fortran_order': " + std::string(fortran) +
         ", 'shape': " + std::string(shape) + ", }          \n";
}

NpyHeader parse(std::string const& file) { return parse_npy(std::as_bytes(std::span(file)), "x.npy"); }

TEST(Npy, WritesWhatItReads) {
  TemporaryFolder folder;
  for (DType const dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    OwnedTensor matrix(dtype, 3, 5);
    auto* const bytes = static_cast<unsigned char*>(matrix.view().data);
    for (int64_t i = 0; i < matrix.view().bytes(); ++i) bytes[i] = static_cast<unsigned char>(7 * i + 1);
    write_npy(folder / "x.npy", matrix);
    NpyFile const file(folder / "x.npy");
    Tensor const read = file.tensor();
    EXPECT_EQ(read.dtype, dtype);
    EXPECT_EQ(file.shape(), (std::vector<int64_t>{3, 5}));
    EXPECT_EQ(read.rows, 3);
    EXPECT_EQ(read.columns, 5);
    EXPECT_EQ(read.stride, 5);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read.data) % 64, 0u);
    EXPECT_EQ(std::memcmp(read.data, bytes, static_cast<size_t>(read.bytes())), 0);
  }
  EXPECT_EQ(folder.count(), 1u);
}

TEST(Npy, WritesTheBytesThatNumpyWrites) {
  TemporaryFolder folder;
  float values[] = {1, 2, 0, 3, 4, 0};
  write_npy(folder / "x.npy", {values, DType::kF32, 2, 2, 3});
  std::string const text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
  float const dense[] = {1, 2, 3, 4};
  std::string const data(reinterpret_cast<char const*>(dense), sizeof dense);
  EXPECT_EQ(bytes_of(folder / "x.npy"), npy(text + std::string(117 - text.size(), ' ') + "\n", data));
}

TEST(Npy, TakesVectorsScalarsAndCubesAsMatrices) {
  auto rows_and_columns = [](std::string_view shape, size_t elements) {
    NpyHeader const h = parse(npy(header("<f2", shape), std::string(2 * elements, 'x')));
    return std::pair(h.rows(), h.columns());
  };
  EXPECT_EQ(rows_and_columns("(4,)", 4), std::pair(int64_t{1}, int64_t{4}));
  EXPECT_EQ(rows_and_columns("()", 1), std::pair(int64_t{1}, int64_t{1}));
  EXPECT_EQ(rows_and_columns("(2, 3, 4)", 24), std::pair(int64_t{6}, int64_t{4}));
  EXPECT_EQ(rows_and_columns("(0, 4)", 0), std::pair(int64_t{0}, int64_t{4}));
}

TEST(Npy, ReadsAllHeaderFormats) {
  std::string const data(8, 'x');
  for (int version : {1, 2, 3}) EXPECT_EQ(parse(npy(header("<f4", "(1, 2)"), data, version)).columns(), 2);
  EXPECT_EQ(parse(npy("{\"shape\": (2,), \"fortran_order\": True, \"descr\": \"<f4\"}", data)).columns(), 2);
  EXPECT_EQ(parse(npy(header("|V2", "(4,)"), data)).dtype, DType::kBF16);
}

TEST(Npy, RefusesLyingFiles) {
  std::string const data(24, 'x'), good = npy(header("<f4", "(2, 3)"), data);
  EXPECT_EQ(parse(good).rows(), 2);
  EXPECT_HAS(invalid([&] { parse(good.substr(0, good.size() - 1)); }), "holds 23 bytes");
  EXPECT_HAS(invalid([&] { parse(good + "x"); }), "holds 25 bytes");
  EXPECT_HAS(invalid([&] { parse(good.substr(0, 30)); }), "promises a header");
  EXPECT_HAS(invalid([&] { parse(good.substr(0, 9)); }), "truncated");
  EXPECT_HAS(invalid([&] { parse(""); }), "no .npy file");
  EXPECT_HAS(invalid([&] { parse("PK\3\4 a zip archive"); }), "no .npy file");
  EXPECT_HAS(invalid([&] { parse(npy(header("<f4", "(2, 3)"), data, 4)); }), "format 4");
  EXPECT_HAS(invalid([&] { parse(npy(header("<f4", "(4611686018427387904, 4)"), data)); }), "promises");
  EXPECT_HAS(invalid([&] { parse(npy(header("<f4", "(9223372036854775807, 1)"), data)); }), "promises");
  EXPECT_HAS(invalid([&] { parse(npy(header("<f4", "(0, 9223372036854775807, 9)"), "")); }), "promises");
  std::string huge = good;
  huge[8] = '\xff', huge[9] = '\xff';
  EXPECT_HAS(invalid([&] { parse(huge); }), "promises a header of 65535 bytes");
}

TEST(Npy, RefusesWhatItDoesNotRead) {
  std::string const data(24, 'x');
  EXPECT_HAS(invalid([&] { parse(npy(header("<u2", "(2, 6)"), data)); }), "<u2");
  EXPECT_HAS(invalid([&] { parse(npy(header(">f4", "(2, 3)"), data)); }), ">f4");
  EXPECT_HAS(invalid([&] { parse(npy(header("<f4", "(2, 3)", "True"), data)); }), "ascontiguousarray");
  EXPECT_HAS(invalid([&] { parse(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }", data)); }),
             "damaged");
  for (char const* text : {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': (6",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (6,)} x",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (-6,)}",
                           "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (6,)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
                           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), 'more': 1}"})
    EXPECT_HAS(invalid([&] { parse(npy(text, data)); }), "damaged") << text;
}

TEST(Npy, LeavesNothingBehindWhereItCannotWrite) {
  TemporaryFolder folder;
  float value = 1;
  EXPECT_HAS(invalid([&] { write_npy(folder / "absent" / "x.npy", matrix(&value, DType::kF32, 1, 1)); }),
             "cannot write");
  EXPECT_EQ(folder.count(), 0u);
}

}  // namespace
}  // namespace flux
