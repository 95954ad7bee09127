// Ranks that measure the units of a suite together: rank 0 has the file and says what comes next.
#include "bench/suite_run.h"

#include <gtest/gtest.h>

#include "flux/world.h"
#include "temporary_folder.h"

namespace flux::test {
namespace {

ResultRow row_of(int m) {
  ResultRow row;
  row.workload = "w", row.op = "ag_gemm", row.m = m, row.n = row.k = 8, row.dtype = "bf16";
  row.world = "processes", row.link = "nvlink", row.method = "flux", row.samples = 1;
  row.total_us = row.p10_us = row.p90_us = 1;
  return row;
}

ResultFile head() {
  ResultFile file;
  file.suite = "core", file.date = "2026-12-01T10:00:00Z", file.commit = "abc", file.command = "flux bench";
  return file;
}

/// The units that each rank measured, by their m.
std::vector<std::vector<int>> measured(std::filesystem::path const& to, int stop_after) {
  std::vector<std::vector<int>> all(3);
  run_threads(3, {}, [&](World& world) {
    std::vector<int>& mine = all[world.rank()];
    std::vector<bench::Unit> units;
    for (int m : {16, 32, 48})
      units.push_back({row_of(m), 1, [&world, &mine, m] {
                         world.barrier();  // every unit is every rank's
                         mine.push_back(m);
                         return std::vector<ResultRow>{row_of(m)};
                       }});
    if (world.rank() != 0) return bench::follow_units(units, [&] { return std::stoi(world.all_gather({})[0]); });
    GrowingResult results(to, head());
    bool const whole = bench::run_units(
        "test", units, results, [&] { return static_cast<int>(mine.size()) == stop_after; },
        [&](int unit) { world.all_gather(std::to_string(unit)); });
    EXPECT_EQ(whole, stop_after < 0);
  });
  return all;
}

TEST(SuiteRun, AllRanksMeasureTheSameUnits) {
  TemporaryFolder const folder;
  std::filesystem::path const file = folder / "r.json";
  for (auto const& rank : measured(file, 1)) EXPECT_EQ(rank, (std::vector<int>{16}));
  EXPECT_EQ(read_result(file).rows.size(), 1u);
  // The same command goes on: what the file has is measured by nobody.
  for (auto const& rank : measured(file, -1)) EXPECT_EQ(rank, (std::vector<int>{32, 48}));
  EXPECT_EQ(read_result(file).rows.size(), 3u);
  for (auto const& rank : measured(file, -1)) EXPECT_TRUE(rank.empty());
}

// Ranks that share a GPU are checked, and not recorded.
TEST(SuiteRun, WritesNothingWhereThereIsNoPlaceFor) {
  for (auto const& rank : measured("", -1)) EXPECT_EQ(rank, (std::vector<int>{16, 32, 48}));
}

}  // namespace
}  // namespace flux::test
