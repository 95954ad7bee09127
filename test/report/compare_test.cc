#include "report/compare.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace flux {
namespace {

ResultRow row(std::string workload, std::string method, double p10, double median, double p90) {
  ResultRow r;
  r.workload = std::move(workload), r.op = "gemm_rs", r.m = 2048, r.n = 8192, r.k = 8192, r.tp = 8, r.dtype = "bf16";
  r.world = "mirror", r.link = "pcie", r.method = std::move(method), r.samples = 21;
  r.p10_us = p10, r.total_us = median, r.p90_us = p90;
  return r;
}

ResultFile file(std::vector<ResultRow> rows) {
  ResultFile f;
  f.suite = "core", f.machine.gpu = "NVIDIA H200", f.machine.gpus = 1, f.rows = std::move(rows);
  return f;
}

TEST(Compare, ARowIsSlowerOnlyBeyondTheSpreadAndTheThreshold) {
  struct Case {
    double p10, median, p90;
    RowChange::Verdict verdict;
  };
  using enum RowChange::Verdict;
  for (auto [p10, median, p90, verdict] :
       {Case{98, 100, 103, kSame},                                     // itself
        Case{102, 110, 115, kSame},                                    // slower, within the spread: p10 < p90 before
        Case{104, 110, 115, kSlower}, Case{103.5, 104.5, 105, kSame},  // beyond the spread, below the threshold
        Case{80, 90, 97, kFaster}, Case{80, 90, 99, kSame}}) {
    Comparison const c =
        compare(file({row("a", "flux", 98, 100, 103)}), file({row("a", "flux", p10, median, p90)}), 0.05);
    ASSERT_EQ(c.changes.size(), 1u);
    EXPECT_EQ(c.changes[0].verdict, verdict) << median;
    EXPECT_DOUBLE_EQ(c.changes[0].ratio, median / 100);
    EXPECT_EQ(c.slower(), verdict == kSlower);
    EXPECT_EQ(c.faster(), verdict == kFaster);
  }
}

TEST(Compare, RowsOfDifferentKindsAreNotMixed) {
  ResultRow const base = row("a", "flux", 1, 2, 3);
  std::vector<ResultRow> others(11, base);
  others[0].method = "none", others[1].variant = "order=naive", others[2].m = 4096, others[3].tp = 2;
  others[4].dtype = "fp16", others[5].weight = "[in,out]", others[6].world = "processes", others[7].link = "nvlink";
  others[8].timing = "graph", others[9].cache = "cold", others[10].epilogue = "bias_gelu";
  for (ResultRow const& other : others) {
    Comparison const c = compare(file({base}), file({other}), 0);
    EXPECT_TRUE(c.changes.empty());
    ASSERT_EQ(c.missing.size(), 1u);
    ASSERT_EQ(c.added.size(), 1u);
    EXPECT_EQ(c.missing[0], base);
    EXPECT_EQ(c.added[0], other);
  }
}

TEST(Compare, TheLastOfTwoLikeRowsCounts) {
  Comparison const c = compare(file({row("a", "flux", 1, 2, 3), row("a", "flux", 9, 10, 11)}),
                               file({row("a", "flux", 1, 2, 3), row("a", "flux", 19, 20, 21)}), 0);
  ASSERT_EQ(c.changes.size(), 1u);
  EXPECT_DOUBLE_EQ(c.changes[0].ratio, 2);
}

TEST(Compare, SaysWhereTheMachinesDiffer) {
  ResultFile before = file({row("a", "flux", 1, 2, 3)}), after = before;
  EXPECT_TRUE(compare(before, after, 0).differences.empty());
  after.machine.gpu = "NVIDIA H100", after.machine.gpus = 2, after.machine.driver = "580";
  EXPECT_EQ(compare(before, after, 0).differences,
            (std::vector<std::string>{"the GPU was NVIDIA H200 and is NVIDIA H100", "the driver was unknown and is 580",
                                      "there were 1 GPUs and are 2"}));
}

TEST(Compare, PrintsWhatChangedAndCountsTheRest) {
  Comparison const c =
      compare(file({row("a", "flux", 98, 100, 102), row("b", "flux", 98, 100, 102), row("c", "none", 1, 2, 3)}),
              file({row("a", "flux", 198, 200, 202), row("b", "flux", 98, 100, 102), row("d", "none", 1, 2, 3)}), 0.02);
  std::string const table = to_table(c, false);
  EXPECT_NE(table.find("flux"), table.npos);
  EXPECT_NE(table.find("2.000   slower"), table.npos) << table;
  EXPECT_EQ(table.find("b gemm_rs"), table.npos) << table;
  EXPECT_NE(to_table(c, true).find("b gemm_rs"), table.npos);
  EXPECT_NE(table.find("only before: c gemm_rs"), table.npos) << table;
  EXPECT_NE(table.find("only after: d gemm_rs"), table.npos) << table;
  EXPECT_NE(table.find("2 rows in both files: 0 faster, 1 slower, 1 within the spread"), table.npos) << table;
  auto const json = nlohmann::json::parse(to_json(c));
  EXPECT_EQ(json["slower"], 1);
  EXPECT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][0]["verdict"], "slower");
  EXPECT_EQ(json["rows"][0]["ratio"], 2.0);
  EXPECT_EQ(json["missing"][0]["method"], "none");
}

}  // namespace
}  // namespace flux
