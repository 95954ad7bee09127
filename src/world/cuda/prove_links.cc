#include "world/cuda/prove_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "world/cuda/link_prover.h"
#include "world/cuda/peer_memory.h"
#include "world/together.h"

namespace flux {
namespace {

constexpr double kLimitSeconds = 20;  // of one attempt, which takes a millisecond

Word seed_of(int from, int to) { return 0x5eed0000u + static_cast<Word>(from * kMaxRanks + to); }

}  // namespace

std::vector<LinkProof> prove_links(Bootstrap& bootstrap, Nodes const& nodes, Gpu& gpu, int device,
                                   double limit_seconds) {
  int const rank = bootstrap.rank(), ranks = bootstrap.size();
  if (nodes.size() == 1) return {};
  auto const memory = gpu.allocate(bootstrap, ranks * int64_t{sizeof(ProofPart)}, Use::kData, limit_seconds);
  auto part = [&](int owner, int writer) { return reinterpret_cast<ProofPart*>(memory->at(owner)) + writer; };

  std::unique_ptr<LinkProver> prover;
  std::string uuid;
  together(bootstrap, limit_seconds, [&] {
    prover = std::make_unique<LinkProver>(device, std::min(limit_seconds / 2, kLimitSeconds));
    uuid = uuid_of(device);
  });
  auto const uuids = bootstrap.all_gather(uuid, limit_seconds);
  std::vector<std::string> written(ranks), read(ranks), way(ranks);
  // An attempt that does not end is the last.
  constexpr char const* kNotTried = "not tried: an earlier attempt did not end";
  auto attempt = [&](auto&& act) -> std::string { return gave_up_on_gpu() ? kNotTried : act(); };
  auto const neighbours = nodes.neighbours(rank);
  for (int i = 1; i < nodes.size(); ++i) {
    int const p = nodes.neighbour(rank, i);
    written[p] = attempt([&] { return prover->write(part(p, rank), seed_of(rank, p)); });
  }
  bootstrap.all_gather({}, limit_seconds);  // all have written
  for (int p : neighbours)
    if (p != rank) read[p] = attempt([&] { return prover->read(part(rank, p), seed_of(p, rank)); });
  together(bootstrap, limit_seconds, [&] {
    for (int p : neighbours)
      if (p != rank) way[p] = gpu.through_host() ? "host memory" : way_to(device, uuids[p]);
  });
  nlohmann::json const mine = {{"device", device}, {"written", written}, {"read", read}, {"way", way}};
  std::vector<nlohmann::json> all;
  for (auto const& one : bootstrap.all_gather(mine.dump(), limit_seconds)) all.push_back(nlohmann::json::parse(one));

  std::vector<LinkProof> links;
  for (int from = 0; from < ranks; ++from)
    for (int to : nodes.neighbours(from)) {
      if (from == to) continue;
      LinkProof link{from, to, all[from]["way"][to], true, all[from]["written"][to]};
      std::string const there = all[to]["read"][from];
      if (link.reason.empty() && !there.empty())
        link.reason = there == kNotTried ? there : "where it was sent, " + there;
      link.works = link.reason.empty();
      links.push_back(link);
    }
  // The first cause is the one worth reading.
  std::ranges::stable_partition(links, [&](LinkProof const& link) { return link.reason != kNotTried; });
  return links;
}

std::string broken_link(std::vector<LinkProof> const& links) {
  for (auto const& link : links)
    if (!link.works)
      return fmt::format("the link from rank {} to rank {} ({}) does not work: {}", link.from, link.to, link.way,
                         link.reason);
  return {};
}

}  // namespace flux
