#include "io/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace flux {

std::optional<int64_t> checked_product(std::vector<int64_t> const& factors) {
  int64_t product = 1;
  bool zero = false;
  for (int64_t const factor : factors) {
    if (factor < 0) return std::nullopt;
    if (factor == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(product, factor, &product)) {
      return std::nullopt;
    }
  }
  return zero ? 0 : product;
}

int64_t matrix_rows(std::vector<int64_t> const& shape) {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}

int64_t matrix_columns(std::vector<int64_t> const& shape) { return shape.empty() ? 1 : shape.back(); }

std::string shape_text(std::vector<int64_t> const& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace flux
