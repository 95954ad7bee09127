// Elements of one byte as the host engine stores and reads them.
#include "engine/host/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace flux::test {
namespace {

double stored(double x, DType dtype) {
  std::byte byte;
  host::narrow(&x, &byte, dtype, 1);
  host::widen(&byte, dtype, &x, 1);
  return x;
}

TEST(Element, EveryFp8IsItselfAndHalfwayGoesToEven) {
  std::vector<double> numbers;
  for (int bits = 0; bits < 0x7f; ++bits) {
    auto const byte = static_cast<std::byte>(bits);
    double x = 0;
    host::widen(&byte, DType::kF8, &x, 1);
    numbers.push_back(x);
    EXPECT_EQ(stored(x, DType::kF8), x);
    EXPECT_EQ(stored(-x, DType::kF8), -x);
  }
  EXPECT_EQ(numbers[0], 0);
  EXPECT_EQ(numbers[1], std::ldexp(1.0, -9));
  EXPECT_EQ(numbers[0x38], 1);
  EXPECT_EQ(numbers[0x7e], 448);
  for (size_t i = 0; i + 1 < numbers.size(); ++i) {
    double const low = numbers[i], high = numbers[i + 1], half = (low + high) / 2;
    EXPECT_LT(low, high);
    EXPECT_EQ(stored(half, DType::kF8), i % 2 == 0 ? low : high) << half;
    EXPECT_EQ(stored(std::nextafter(half, 0.0), DType::kF8), low);
    EXPECT_EQ(stored(std::nextafter(half, 500.0), DType::kF8), high);
  }
  EXPECT_EQ(stored(1e30, DType::kF8), 448);
  EXPECT_EQ(stored(-INFINITY, DType::kF8), -448);
  EXPECT_TRUE(std::isnan(stored(NAN, DType::kF8)));
}

TEST(Element, Int8IsRoundedAndEndsAtItsLargest) {
  for (auto [given, want] : {std::pair{0.5, 0}, {1.5, 2}, {-2.5, -2}, {127.4, 127}, {1e9, 127}, {-1e9, -128}})
    EXPECT_EQ(stored(given, DType::kI8), want) << given;
}

}  // namespace
}  // namespace flux::test
