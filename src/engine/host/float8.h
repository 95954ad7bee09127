#pragma once
// fp8 e4m3: a sign, four bits of exponent, three of mantissa. No infinities; the largest is 448, all ones is NaN.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace flux::host {

struct Float8 {
  uint8_t bits = 0;

  /// The nearest, ties to even; beyond the largest the largest.
  static Float8 nearest(double x) {
    if (std::isnan(x)) return {kNan};
    double const size = std::min(std::abs(x), 448.0);
    int exponent = kLeast;
    if (size > 0) std::frexp(size, &exponent);
    int const unit = std::max(exponent - 4, kLeast);  // of the last bit, as a power of two
    // A mantissa that rounds up to the next power carries into the exponent.
    int const rounded = (unit - kLeast) * 8 + static_cast<int>(std::nearbyint(std::ldexp(size, -unit)));
    return {static_cast<uint8_t>(rounded | (std::signbit(x) ? kSign : 0))};
  }
  explicit operator float() const {
    static std::array<float, 256> const values = all();
    return values[bits];
  }
  explicit operator double() const { return static_cast<float>(*this); }

 private:
  static constexpr int kLeast = -9;  // the smallest number is 2 to this
  static constexpr uint8_t kSign = 0x80, kNan = 0x7f;

  static std::array<float, 256> all() {
    std::array<float, 256> values{};
    for (int i = 0; i < 256; ++i) {
      int const exponent = i >> 3 & 15, mantissa = i & 7;
      float size =
          std::ldexp(static_cast<float>(exponent == 0 ? mantissa : 8 + mantissa), std::max(exponent - 1, 0) + kLeast);
      if ((i & kNan) == kNan) size = std::numeric_limits<float>::quiet_NaN();
      values[static_cast<size_t>(i)] = i & kSign ? -size : size;
    }
    return values;
  }
};

}  // namespace flux::host
