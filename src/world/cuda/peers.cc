#include "world/cuda/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "world/together.h"

namespace flux {
namespace {

constexpr std::array<std::string_view, 3> kWords = {"auto", "host", "nccl"};  // in the order of Peers

Peers peers_of_environment() {
  char const* const given = std::getenv(kPeersVariable);
  std::string_view const word = given && *given ? given : "auto";
  auto const found = std::ranges::find(kWords, word);
  if (found == kWords.end())
    throw Error(ErrorKind::kInvalid, fmt::format("{}={} is none of {}", kPeersVariable, word, fmt::join(kWords, ", ")));
  return static_cast<Peers>(found - kWords.begin());
}

}  // namespace

Peers agreed_peers(Bootstrap& bootstrap, double limit_seconds) {
  Peers mine = Peers::kAuto;
  together(bootstrap, limit_seconds, [&] { mine = peers_of_environment(); });
  auto const all = bootstrap.all_gather(kWords[static_cast<size_t>(mine)], limit_seconds);
  for (size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0])
      throw Error(ErrorKind::kInvalid, fmt::format("{} is {} on rank 0 and {} on rank {}; give every rank the same",
                                                   kPeersVariable, all[0], all[r], r));
  return mine;
}

}  // namespace flux
