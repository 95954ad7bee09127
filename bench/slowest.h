#pragma once
// What the ranks of a world measured side by side, as one figure a sample: the slowest rank's.
#include <algorithm>
#include <string>
#include <vector>

#include "flux/world.h"

namespace flux::bench {

/// Collective. `mine`: this rank's samples of each method. Returns, on every rank, the slowest rank's of each. Throws
/// Error{kInternal} where ranks measured different things.
inline std::vector<std::vector<double>> slowest(World& world, std::vector<std::vector<double>> const& mine) {
  std::string bytes;
  auto append = [&](auto const* data, size_t count) {
    bytes.append(reinterpret_cast<char const*>(data), count * sizeof *data);
  };
  for (auto const& samples : mine) {
    uint64_t const count = samples.size();
    append(&count, 1), append(samples.data(), samples.size());
  }
  auto all = mine;
  for (std::string const& theirs : world.all_gather(bytes)) {
    if (theirs.size() != bytes.size())
      throw Error(ErrorKind::kInternal, "the ranks took different numbers of samples, " + std::to_string(bytes.size()) +
                                            " and " + std::to_string(theirs.size()) + " bytes of them");
    char const* at = theirs.data();
    for (auto& samples : all) {
      uint64_t count = 0;
      std::copy_n(at, sizeof count, reinterpret_cast<char*>(&count));
      at += sizeof count;
      if (count != samples.size())
        throw Error(ErrorKind::kInternal, "of one method one rank took " + std::to_string(samples.size()) +
                                              " samples, another " + std::to_string(count));
      for (double& one : samples) {
        double other = 0;
        std::copy_n(at, sizeof other, reinterpret_cast<char*>(&other));
        at += sizeof other, one = std::max(one, other);
      }
    }
  }
  return all;
}

}  // namespace flux::bench
