#pragma once
// The sizes that the sweeps over src/tile run through.
#include <cstdint>
#include <vector>

namespace flux::test {

/// Rows: none, fewer than ranks, primes, powers of two and their neighbours, several hundred.
inline std::vector<int64_t> swept_rows() {
  return {0, 1, 2, 3, 5, 7, 8, 13, 15, 16, 17, 31, 32, 61, 64, 97, 127, 128, 129, 211, 255, 256, 257, 401, 512, 743};
}

/// Block heights: one row, odd ones, the usual ones, higher than most of the rows.
inline std::vector<int> swept_blocks() { return {1, 2, 3, 5, 8, 13, 16, 37, 64, 100, 128, 255, 256}; }

}  // namespace flux::test
