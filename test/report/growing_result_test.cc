#include "report/growing_result.h"

#include <gtest/gtest.h>

#include "error_of.h"
#include "temporary_folder.h"

namespace flux {
namespace {

ResultRow row(int64_t m, std::string method = "flux") {
  ResultRow r;
  r.workload = "gpt3-fc1", r.op = "ag_gemm", r.m = m, r.n = 49152, r.k = 12288, r.tp = 8, r.dtype = "bf16";
  r.world = "mirror", r.link = "pcie", r.method = std::move(method);
  r.total_us = 100, r.p10_us = 99, r.p90_us = 101, r.samples = 5;
  return r;
}

ResultFile head() {
  ResultFile file;
  file.suite = "core", file.date = "2026-12-01T10:00:00Z", file.commit = "abc";
  file.command = "flux bench --suite core --samples 5";
  file.machine.gpu = "NVIDIA H200", file.machine.gpus = 1;
  return file;
}

TEST(GrowingResult, IsWholeAfterEveryProblem) {
  TemporaryFolder folder;
  GrowingResult result(folder.path(), head());
  EXPECT_EQ(folder.count(), 0u);
  result.add({row(64), row(64, "none")});
  EXPECT_EQ(read_result(result.path()).rows.size(), 2u);
  result.add({row(512)});
  EXPECT_EQ(read_result(result.path()).rows.size(), 3u);
  EXPECT_EQ(result.path().filename(), "2026-12-01-h200x1-core.json");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(GrowingResult, GoesOnWhereItStopped) {
  TemporaryFolder folder;
  std::filesystem::path const path = folder / "mine.json";
  GrowingResult(path, head()).add({row(64)});
  ResultFile now = head();
  now.date = "2026-12-02T11:00:00Z";
  now.command = "/usr/bin/flux bench --resume " + path.native() + " --suite core --samples 5";
  GrowingResult result(path, now);
  EXPECT_TRUE(result.resumed());
  EXPECT_TRUE(result.has(row(64, "another method")));
  EXPECT_FALSE(result.has(row(512)));
  result.add({row(512)});
  result.close(Sensors{1980, {}, 350.5, 41});
  ResultFile const file = read_result(path);
  EXPECT_EQ(file.rows.size(), 2u);
  EXPECT_EQ(file.date, head().date) << "of the run that began it";
  EXPECT_EQ(file.command, head().command);
  EXPECT_EQ(file.after->power_w, 350.5);
  EXPECT_FALSE(file.after->memory_clock_mhz);
  EXPECT_FALSE(file.before);
}

TEST(GrowingResult, RefusesAnotherRunsFile) {
  TemporaryFolder folder;
  std::filesystem::path const path = folder / "mine.json";
  GrowingResult(path, head()).add({row(64)});
  auto refused = [&](auto&& change) {
    ResultFile other = head();
    change(other);
    return invalid([&] { GrowingResult(path, other); });
  };
  EXPECT_HAS(refused([](ResultFile& f) { f.commit = "def"; }), "its commit is \"abc\", and now it is \"def\"");
  EXPECT_HAS(refused([](ResultFile& f) { f.suite = "edge"; }), "its suite is \"core\"");
  EXPECT_HAS(refused([](ResultFile& f) { f.command += " --cold"; }),
             "now it is \"bench --suite core --samples 5 --cold\"");
  EXPECT_HAS(refused([](ResultFile& f) { f.machine.gpu = "NVIDIA H100"; }), "its machine's gpu is \"NVIDIA H200\"");
  EXPECT_HAS(refused([](ResultFile& f) { f.machine.cores = 8; }), "its machine's cores is \"none\"");
}

TEST(GrowingResult, LeavesNothingWithoutRows) {
  TemporaryFolder folder;
  GrowingResult(folder.path(), head()).close({});
  EXPECT_EQ(folder.count(), 0u);
}

TEST(GrowingResult, ComparesCommandsWithoutWhereTheyWrite) {
  EXPECT_EQ(measured_command("build/flux bench -o a.json --suite core"), "bench --suite core");
  EXPECT_EQ(measured_command("flux bench --suite core --resume=a.json"), "bench --suite core");
  EXPECT_EQ(measured_command("flux bench --suite core --out x"), "bench --suite core");
  EXPECT_EQ(measured_command("flux"), "");
}

}  // namespace
}  // namespace flux
