#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flux {

/// The product, or nothing if a factor is negative or the product (zeros left aside, so that no order of factors can
/// overflow unseen) does not fit into int64.
std::optional<int64_t> checked_product(std::vector<int64_t> const& factors);

/// An array of any number of dimensions as a matrix: [n] is one row, [a, b, n] is [a * b, n], a scalar [1, 1].
/// The product of `shape` was checked before.
int64_t matrix_rows(std::vector<int64_t> const& shape);
int64_t matrix_columns(std::vector<int64_t> const& shape);

std::string shape_text(std::vector<int64_t> const& shape);  ///< "[384, 1536]"

}  // namespace flux
