#include "report/result_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "error_of.h"
#include "temporary_folder.h"

namespace flux {
namespace {

ResultRow row(std::string method, double total_us) {
  ResultRow r;
  r.workload = "gpt3-fc1", r.op = "ag_gemm", r.m = 4096, r.n = 49152, r.k = 12288, r.tp = 8, r.dtype = "bf16";
  r.world = "mirror", r.link = "nvlink", r.duplex = true, r.incoming = "partner", r.method = std::move(method);
  r.timing = "graph", r.total_us = total_us, r.p10_us = total_us - 1, r.p90_us = total_us + 1.5, r.samples = 21;
  return r;
}

ResultFile two_rows() {
  ResultFile file;
  file.suite = "core", file.date = "2026-12-01T10:00:00Z", file.commit = "abc",
  file.command = "flux bench --suite core";
  file.machine.gpu = "NVIDIA H200", file.machine.gpus = 2, file.machine.link = "nvlink";
  file.rows = {row("none", 1200), row("flux", 950)};
  ResultRow& flux = file.rows[1];
  flux.gemm_us = 900, flux.gemm_by = "cublaslt", flux.ect_us = 50, flux.efficiency = 0.833, flux.floor_us = 900;
  flux.error = 2.5e-3, flux.plan = "sm90 128x256", flux.variant = "swizzle=off";
  return file;
}

std::string changed(std::string const& from, std::string const& to) {
  std::string text = to_json(two_rows());
  size_t const at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

std::string refused(std::string const& text) {
  return invalid([&] { parse_result(text, "f.json"); });
}

TEST(ResultFile, IsReadAsItWasWritten) {
  TemporaryFolder folder;
  auto const path = write_result(folder.path(), two_rows());
  EXPECT_EQ(path.filename(), "2026-12-01-h200x2-core.json");
  EXPECT_EQ(read_result(path), two_rows());
  EXPECT_EQ(folder.count(), 1u);
}

TEST(ResultFile, HasTheDocumentedShape) {
  auto const json = nlohmann::json::parse(to_json(two_rows()));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["machine"]["gpu"], "NVIDIA H200");
  EXPECT_TRUE(json["machine"]["torch"].is_null());
  EXPECT_EQ(json["rows"].size(), 2u);
  EXPECT_TRUE(json["rows"][0]["efficiency"].is_null());
  EXPECT_EQ(json["rows"][1]["efficiency"], 0.833);
  EXPECT_EQ(json["rows"][1]["variant"], "swizzle=off");
  for (char const* key : {"workload", "op",         "m",        "n",
                          "k",        "tp",         "dtype",    "weight",
                          "epilogue", "world",      "nodes",    "link",
                          "duplex",   "incoming",   "method",   "variant",
                          "timing",   "cache",      "phase",    "total_us",
                          "p10_us",   "p90_us",     "samples",  "p50_us",
                          "p99_us",   "read_gbps",  "gemm_us",  "gemm_by",
                          "comm_us",  "link_gbps",  "comm_by",  "budget_gemm_us",
                          "ect_us",   "efficiency", "floor_us", "peak_floor_us",
                          "plan",     "error"})
    EXPECT_TRUE(json["rows"][0].contains(key)) << key;
  EXPECT_EQ(json["rows"][0].size(), 43u);
}

TEST(ResultFile, LeavesOutWhatAGpuDoesNotSay) {
  ResultFile file = two_rows();
  EXPECT_FALSE(nlohmann::json::parse(to_json(file)).contains("before"));
  file.before = {1980, 3201, {}, 35}, file.after.emplace();
  auto const json = nlohmann::json::parse(to_json(file));
  EXPECT_EQ(json["before"].size(), 3u);
  EXPECT_EQ(json["before"]["clock_mhz"], 1980);
  EXPECT_TRUE(json["after"].is_object() && json["after"].empty());
  EXPECT_EQ(parse_result(to_json(file), "f.json"), file);
}

TEST(ResultFile, NeverReplacesAnOlderOne) {
  TemporaryFolder folder;
  write_result(folder.path(), two_rows());
  EXPECT_EQ(write_result(folder.path(), two_rows()).filename(), "2026-12-01-h200x2-core-2.json");
  EXPECT_EQ(write_result(folder.path(), two_rows()).filename(), "2026-12-01-h200x2-core-3.json");
  ResultFile host = two_rows();
  host.machine = {}, host.machine.cores = 2;
  EXPECT_EQ(write_result(folder.path(), host).filename(), "2026-12-01-cpux2-core.json");
  host.machine.gpu = "NVIDIA GeForce RTX 4090", host.machine.gpus = 1;
  EXPECT_EQ(write_result(folder.path(), host).filename(), "2026-12-01-geforce_rtx_4090x1-core.json");
}

TEST(ResultFile, IsNotWrittenWithNonsense) {
  TemporaryFolder folder;
  auto not_written = [&](auto&& spoil) {
    ResultFile file = two_rows();
    spoil(file);
    std::string const message = invalid([&] { write_result(folder.path(), file); });
    EXPECT_EQ(folder.count(), 0u);
    return message;
  };
  EXPECT_HAS(not_written([](ResultFile& f) { f.rows.clear(); }), "no rows");
  EXPECT_HAS(not_written([](ResultFile& f) { f.rows[1].total_us = NAN; }), "nan for \"total_us\" in row 2");
  EXPECT_HAS(not_written([](ResultFile& f) { f.rows[0].error = INFINITY; }), "inf for \"error\" in row 1");
  EXPECT_HAS(not_written([](ResultFile& f) { f.rows[0].samples = 0; }), "more than 0");
  EXPECT_HAS(not_written([](ResultFile& f) { f.suite = "a/b"; }), "suite");
  EXPECT_HAS(not_written([](ResultFile& f) { f.suite = ""; }), "suite");
  EXPECT_HAS(not_written([](ResultFile& f) { f.date = "yesterday"; }), "2026-12-01T10:00:00Z");
  EXPECT_HAS(invalid([&] { write_result(folder / "absent", two_rows()); }), "cannot write");
}

TEST(ResultFile, OfOthersIsRefused) {
  EXPECT_EQ(parse_result(to_json(two_rows()), "f.json"), two_rows());
  EXPECT_HAS(refused(changed("\"schema\": 1", "\"schema\": 7")), "is of schema \"7\"; this build reads schema 1");
  EXPECT_HAS(refused(changed("\"schema\": 1,", "")), "no \"schema\"");
  EXPECT_HAS(refused("[]"), "no \"schema\"");
  EXPECT_HAS(refused(to_json(two_rows()).substr(0, 900)), "truncated");
  EXPECT_HAS(refused(changed("\"total_us\":1200.0", "\"total_us\":NaN")), "no JSON from byte");
  EXPECT_HAS(refused(changed("\"total_us\":1200.0", "\"total_us\":1e999")), "too large");
  EXPECT_HAS(refused(changed("\"total_us\":1200.0", "\"total_us\":null")), "has \"null\" for \"total_us\" in row 1");
  EXPECT_HAS(refused(changed("\"total_us\":1200.0,", "")), "has no \"total_us\" in row 1");
  EXPECT_HAS(refused(changed("\"m\":4096", "\"m\":4096.5")), "allowed is a whole number");
  EXPECT_HAS(refused(changed("\"m\":4096", "\"m\":18446744073709551615")), "allowed is a whole number");
  EXPECT_HAS(refused(changed("\"error\":0.0025", "\"error\":\"small\"")), "allowed is a number or null");
  EXPECT_HAS(refused(changed("\"duplex\":true", "\"duplex\":1")), "true or false");
  EXPECT_HAS(refused(changed("\"tp\":8", "\"tp\":8,\"pp\":8")), "unknown field \"pp\" in row 1");
  EXPECT_HAS(refused(changed("\"gpus\": 2", "\"gpus\": 2, \"colour\": 1")), "unknown field \"colour\" in machine");
  EXPECT_HAS(refused(changed("\"suite\": \"core\",", "")), "has no \"suite\" in the file");
  EXPECT_HAS(refused(R"({"schema":1,"suite":"a","date":"2026-12-01T10:00:00Z","commit":"","command":"",)"
                     R"("machine":{"gpus":0},"rows":[]})"),
             "no rows");
  EXPECT_HAS(refused(R"({"schema":1,"suite":"a","date":"2026-12-01T10:00:00Z","commit":"","command":"",)"
                     R"("machine":{"gpus":0},"rows":[7]})"),
             "no object where row 1");
}

TEST(ResultFile, SurvivesAnyTruncation) {
  std::string const text = to_json(two_rows());
  for (size_t length = 0; length + 2 < text.size(); ++length) refused(text.substr(0, length));
}

TEST(ResultFile, KeepsItsFormWithOddCommandLines) {
  ResultFile file = two_rows();
  file.command = "flux \xff null \"quoted\"";
  EXPECT_EQ(parse_result(to_json(file), "f").command, "flux \xef\xbf\xbd null \"quoted\"");
}

TEST(ResultFile, PrintsATable) {
  ResultFile file = two_rows();
  file.rows.push_back(row("flux", 500));
  file.rows.back().m = 2048;
  EXPECT_EQ(
      to_table(file),
      "gpt3-fc1 ag_gemm: m 4096, n 49152, k 12288, 8 ranks, bf16, [out,in]; mirror over nvlink, both ways, incoming "
      "by partner; graph, warm\n"
      "  method            total us     p10     p90   GEMM  comm   ECT     E  x floor    error\n"
      "  none                1200.0  1199.0  1201.5      -     -     -     -        -        -\n"
      "  flux swizzle=off     950.0   949.0   951.5  900.0     -  50.0  0.83    1.056  2.5e-03\n"
      "\n"
      "gpt3-fc1 ag_gemm: m 2048, n 49152, k 12288, 8 ranks, bf16, [out,in]; mirror over nvlink, both ways, incoming "
      "by partner; graph, warm\n"
      "  method  total us    p10    p90  GEMM  comm  ECT  E  x floor  error\n"
      "  flux       500.0  499.0  501.5     -     -    -  -        -      -\n");
}

TEST(ResultFile, DatesAreUtc) {
  std::string const now = utc_now();
  ASSERT_EQ(now.size(), 20u);
  EXPECT_EQ(now.back(), 'Z');
  EXPECT_GE(now, "2025");
}

}  // namespace
}  // namespace flux
