#include "report/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "error_of.h"
#include "temporary_folder.h"
#include "trace/trace.h"

namespace flux {
namespace {

ResultRow row(std::string method, double total_us) {
  ResultRow r;
  r.workload = "gpt3-fc1", r.op = "ag_gemm", r.m = 4096, r.n = 49152, r.k = 12288, r.tp = 8, r.dtype = "bf16";
  r.world = "mirror", r.link = "pcie", r.duplex = true, r.method = std::move(method), r.samples = 21;
  r.total_us = total_us, r.p10_us = total_us - 1, r.p90_us = total_us + 1.5;
  r.gemm_us = 900, r.comm_us = 700, r.floor_us = 900, r.ect_us = total_us - 900;
  return r;
}

ResultFile file(std::string date, std::string gpu) {
  ResultFile f;
  f.suite = "core", f.date = date + "T10:00:00Z", f.commit = "abc", f.command = "flux bench";
  f.machine.gpu = std::move(gpu), f.machine.gpus = 1;
  f.rows = {row("none", 1600), row("flux", 950)};
  return f;
}

std::string saved(TemporaryFolder const& folder, std::string const& name, std::string const& text) {
  return folder.file(name, text);
}

Timeline two_bars() {
  Timeline t;
  t.title = "ag_gemm", t.facts = {{"link", "declared"}};
  t.tracks = {{{0, 0}, "worker 0"}, {{1, 1}, "copy engine"}};
  Span maths, copy;
  maths.begin_ns = 1'000, maths.end_ns = 4'123, maths.row = 0, maths.rows = 8, maths.n = 3;
  copy.rank = 1, copy.track = 1, copy.kind = SpanKind::kCopy, copy.begin_ns = 0, copy.end_ns = 900, copy.peer = 0,
  copy.row = 8, copy.rows = 16;
  t.spans = {maths, copy};
  return t;
}

/// What the page's scripts will read.
nlohmann::json data_of(std::string const& html) {
  std::string const mark = "<script type=\"application/json\" id=\"data\">";
  size_t const begin = html.find(mark) + mark.size();
  return nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

TEST(Report, HoldsEveryNumberOfItsFiles) {
  TemporaryFolder folder;
  auto const report = read_report({saved(folder, "a.json", to_json(file("2026-12-01", "NVIDIA H200")))}, {});
  auto const data = data_of(to_html(report));
  ASSERT_EQ(data["rows"].size(), 2u);
  auto cell = [&](size_t i, std::string const& field) {
    for (size_t column = 0; column < data["fields"].size(); ++column)
      if (data["fields"][column] == field) return data["rows"][i][column];
    ADD_FAILURE() << "no field " << field;
    return nlohmann::json();
  };
  EXPECT_EQ(cell(0, "method"), "none");
  EXPECT_EQ(cell(1, "total_us"), 950.0);
  EXPECT_EQ(cell(1, "ect_us"), 50.0);
  EXPECT_TRUE(cell(1, "efficiency").is_null());
  EXPECT_DOUBLE_EQ(cell(1, "over_floor").get<double>(), 950.0 / 900);
  EXPECT_DOUBLE_EQ(cell(1, "tflops").get<double>(), 2.0 * 4096 * 49152 * 12288 / 8 / 950e-6 / 1e12);
  EXPECT_EQ(data["files"][0]["name"], "a.json");
  EXPECT_EQ(data["files"][0]["commit"], "abc");
  EXPECT_EQ(data["files"][0]["machine"]["gpu"], "NVIDIA H200");
  EXPECT_TRUE(data["left_out"].empty());
}

TEST(Report, SpeedIsOfOneGpuAndOnlyWhereSizesAreOfOneGemm) {
  ResultRow r = row("flux", 1000);
  r.m = 1000, r.n = 2000, r.k = 5000, r.tp = 4;
  EXPECT_DOUBLE_EQ(tflops(r).value(), 5.0);
  for (char const* op : {"gemm", "gemm_rs", "gemm_ar"}) EXPECT_TRUE((r.op = op, tflops(r)));
  for (char const* op : {"layer", "model"}) EXPECT_FALSE((r.op = op, tflops(r)));
  r.op = "gemm", r.tp = 0;
  EXPECT_FALSE(tflops(r));
  r.floor_us = 0;
  EXPECT_FALSE(over_floor(r));
  r.floor_us.reset();
  EXPECT_FALSE(over_floor(r));
}

TEST(Report, TextOfFilesIsNeverReadAsHtml) {
  TemporaryFolder folder;
  ResultFile f = file("2026-12-01", "</script><script>alert(1)</script><!--");
  f.rows[0].workload = "</SCRIPT ><b>", f.command = "\xff & \"quoted\" \xe2\x80\xa8";
  auto const report = read_report({saved(folder, "a.json", to_json(f))}, {});
  std::string const html = to_html(report);
  EXPECT_EQ(html.find("<script>alert"), html.npos);
  EXPECT_EQ(html.find("</SCRIPT"), html.npos);
  EXPECT_EQ(data_of(html)["files"][0]["machine"]["gpu"], *f.machine.gpu);
  EXPECT_EQ(data_of(html)["rows"][0][1], "</SCRIPT ><b>");
}

TEST(Report, IsOnePageWithoutNetworkAndWithoutMarks) {
  TemporaryFolder folder;
  std::string const html =
      to_html(read_report({saved(folder, "a.json", to_json(file("2026-12-01", "NVIDIA H200")))}, {}));
  for (char const* part : {"src=", "@import", "fetch(", "XMLHttpRequest", "/*SCRIPT", "/*STYLE", "/*DARK", "/*DATA"})
    EXPECT_EQ(html.find(part), html.npos) << part;
  EXPECT_EQ(html.find("<!doctype html>"), 0u);
  EXPECT_NE(html.find("<noscript>"), html.npos);
}

TEST(Report, OneBadFileHidesNoGoodOne) {
  TemporaryFolder folder;
  std::string const good = to_json(file("2026-12-01", "NVIDIA H200"));
  auto changed = [&](std::string const& from, std::string const& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  std::vector<std::string> const paths = {
      saved(folder, "truncated.json", good.substr(0, good.size() / 2)),
      saved(folder, "good.json", good),
      saved(folder, "newer.json", changed("\"schema\": 1", "\"schema\": 2")),
      saved(folder, "nan.json", changed("\"total_us\":950.0", "\"total_us\":NaN")),
      saved(folder, "empty.json", good.substr(0, good.find("\"rows\"")) + "\"rows\": []}"),
      folder / "absent.json",
  };
  auto const report = read_report(paths, {saved(folder, "odd.json", R"({"traceEvents": 7})")});
  ASSERT_EQ(report.files.size(), 1u);
  EXPECT_EQ(report.files[0].name, "good.json");
  ASSERT_EQ(report.left_out.size(), 6u);
  for (auto const& [i, says] : {std::pair{0, "truncated"},
                                {1, "schema"},
                                {2, "no JSON"},
                                {3, "no rows"},
                                {4, "absent.json"},
                                {5, "traceEvents"}}) {
    EXPECT_HAS(report.left_out[static_cast<size_t>(i)], says);
    EXPECT_EQ(report.left_out[static_cast<size_t>(i)].find('\n'), std::string::npos);
  }
  EXPECT_EQ(data_of(to_html(report))["left_out"].size(), 6u);
  auto const summary = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(summary["rows"], 2);
  EXPECT_EQ(summary["left_out"].size(), 6u);
  EXPECT_HAS(invalid([&] { read_report({paths[0], paths[2]}, {}); }), "no file is good");
}

TEST(Report, SaysThatMachinesDifferAndWhatComesTwice) {
  TemporaryFolder folder;
  std::string const one = saved(folder, "a.json", to_json(file("2026-11-01", "NVIDIA H200")));
  std::string const other = saved(folder, "b.json", to_json(file("2026-12-01", "NVIDIA H100")));
  auto report = read_report({one, other}, {});
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_HAS(report.notes[0], "2 machines (1 x NVIDIA H100; 1 x NVIDIA H200)");
  EXPECT_EQ(report.files[0].name, "b.json") << "the newest first";
  EXPECT_TRUE(read_report({one}, {}).notes.empty());
  report = read_report({one, one}, {});
  EXPECT_EQ(report.files.size(), 1u);
  EXPECT_HAS(report.notes.at(0), "twice");
  ResultFile again = file("2026-12-01", "NVIDIA H200");
  again.rows.push_back(again.rows[1]);
  EXPECT_HAS(read_report({saved(folder, "c.json", to_json(again))}, {}).notes.at(0), "measures rows again (1)");
}

TEST(Report, FilesOfOneNameKeepTheirFolders) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "x"), std::filesystem::create_directory(folder / "y");
  std::string const text = to_json(file("2026-12-01", "NVIDIA H200"));
  auto const report = read_report({folder.file("x/a.json", text), folder.file("y/a.json", text)}, {});
  EXPECT_HAS(report.files[0].name, "x/a.json");
  EXPECT_HAS(report.files[1].name, "y/a.json");
}

TEST(Report, ShowsTimelinesInNanosecondsFromTheFirstBar) {
  TemporaryFolder folder;
  auto const report = read_report({}, {saved(folder, "t.json", to_chrome_json(two_bars()))});
  auto const trace = data_of(to_html(report))["timelines"][0];
  EXPECT_EQ(trace["title"], "ag_gemm");
  EXPECT_EQ(trace["duration_ns"], 4123);
  EXPECT_EQ(trace["lanes"][0]["name"], "worker 0");
  EXPECT_EQ(trace["lanes"][0]["spans"][0], nlohmann::json::parse("[1, 1000, 3123, 0, 8, 3, -1]"));
  EXPECT_EQ(trace["lanes"][1]["rank"], 1);
  EXPECT_EQ(trace["lanes"][1]["spans"][0], nlohmann::json::parse("[3, 0, 900, 8, 16, -1, 0]"));
}

TEST(ChromeTraceReader, ReadsWhatTheWriterWrote) {
  EXPECT_EQ(parse_chrome_json(to_chrome_json(two_bars()), "t.json"), [] {
    Timeline t = two_bars();
    std::swap(t.spans[0], t.spans[1]);
    std::sort(t.spans.begin(), t.spans.end(), [](Span const& a, Span const& b) { return a.rank < b.rank; });
    return t;
  }());
}

TEST(ChromeTraceReader, RefusesWhatIsNoTimeline) {
  auto refused = [](std::string const& text) { return invalid([&] { parse_chrome_json(text, "t.json"); }); };
  std::string const good = to_chrome_json(two_bars());
  for (size_t length = 0; length + 2 < good.size(); length += 7) refused(good.substr(0, length));
  auto event = [](std::string const& fields) { return R"({"traceEvents":[{"ph":"X",)" + fields + "}]}"; };
  EXPECT_HAS(refused("[]"), "traceEvents");
  EXPECT_HAS(refused(R"({"traceEvents":[]})"), "no spans");
  EXPECT_HAS(refused(R"({"traceEvents":[3]})"), "no object");
  EXPECT_HAS(refused(R"({"traceEvents":[{"ph":3}]})"), "wrong type");
  EXPECT_HAS(refused(event(R"("name":"aten::mm","pid":0,"tid":0,"ts":1,"dur":2)")), "aten::mm");
  EXPECT_HAS(refused(event(R"("name":"maths","pid":"0","tid":0,"ts":1,"dur":2)")), "pid");
  EXPECT_HAS(refused(event(R"("name":"maths","pid":0,"tid":4294967296,"ts":1,"dur":2)")), "tid");
  EXPECT_HAS(refused(event(R"("name":"maths","pid":0,"tid":0,"ts":1e300,"dur":2)")), "ts");
  EXPECT_HAS(refused(event(R"("name":"maths","pid":0,"tid":0,"ts":1,"dur":-2)")), "before it begins");
}

}  // namespace
}  // namespace flux
