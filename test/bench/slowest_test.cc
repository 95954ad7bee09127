// What ranks measured side by side, put together.
#include "bench/slowest.h"

#include <gtest/gtest.h>

#include <functional>

#include "error_of.h"

namespace flux::test {
namespace {

using Samples = std::vector<std::vector<double>>;

/// What each of the ranks is given back, for what `mine` says of it.
std::vector<Samples> on_ranks(int ranks, std::function<Samples(int rank)> const& mine) {
  std::vector<Samples> all(ranks);
  run_threads(ranks, {}, [&](World& world) { all[world.rank()] = bench::slowest(world, mine(world.rank())); });
  return all;
}

TEST(Slowest, IsTakenSampleBySampleAndOnAllRanksAlike) {
  std::vector<Samples> const measured = {{{1, 5, 2}, {10}, {}}, {{3, 4, 2}, {9}, {}}, {{2, 6, 1}, {11}, {}}};
  Samples const want = {{3, 6, 2}, {11}, {}};
  for (Samples const& got : on_ranks(3, [&](int rank) { return measured[rank]; })) EXPECT_EQ(got, want);
}

TEST(Slowest, OfOneRankIsItsOwn) {
  Samples const mine = {{4, 2}, {0.5, 1e9}};
  EXPECT_EQ(on_ranks(1, [&](int) { return mine; })[0], mine);
}

// No figure is made of samples that do not belong together.
TEST(Slowest, RefusesRanksThatMeasuredDifferentThings) {
  auto const said = [](std::function<Samples(int)> const& mine) {
    return error_of(ErrorKind::kInternal, [&] { on_ranks(2, mine); });
  };
  EXPECT_HAS(said([](int rank) { return Samples{std::vector<double>(2 + rank, 1.)}; }), "different numbers of samples");
  EXPECT_HAS(said([](int rank) {
               return rank == 0 ? Samples{{1, 2}, {3}} : Samples{{1}, {2, 3}};
             }),
             "of one method one rank took");
}

}  // namespace
}  // namespace flux::test
