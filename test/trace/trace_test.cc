#include "trace/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "error_of.h"
#include "temporary_folder.h"
#include "trace/svg_style.h"

namespace flux {
namespace {

Timeline one_copy() {
  Timeline t;
  t.title = "m < 64 & \"n\"";
  t.facts = {{"link", "declared"}};
  t.tracks = {{{0, 0}, "worker 0"}, {{0, 1}, "copy engine"}};
  Span copy;
  copy.track = 1, copy.kind = SpanKind::kCopy, copy.begin_ns = 5'000'000, copy.end_ns = 5'001'500, copy.row = 0,
  copy.rows = 8, copy.peer = 0;
  Span maths;
  maths.kind = SpanKind::kMaths, maths.begin_ns = 5'001'600, maths.end_ns = 5'004'000, maths.row = 0, maths.rows = 8,
  maths.n = 3;
  t.spans = {copy, maths};
  return t;
}

TEST(ChromeTrace, IsWhatPerfettoReads) {
  auto const json = nlohmann::json::parse(to_chrome_json(one_copy()));
  EXPECT_EQ(json["otherData"]["title"], "m < 64 & \"n\"");
  EXPECT_EQ(json["otherData"]["link"], "declared");
  auto find = [&](std::string const& phase, std::string const& name) {
    for (auto const& event : json["traceEvents"])
      if (event["ph"] == phase && event["name"] == name) return event;
    ADD_FAILURE() << "no " << phase << ' ' << name;
    return nlohmann::json();
  };
  EXPECT_EQ(find("M", "process_name")["args"]["name"], "rank 0");
  EXPECT_EQ(find("M", "thread_name")["args"]["name"], "worker 0");
  auto const copy = find("X", "copy"), maths = find("X", "maths");
  EXPECT_EQ(copy["ts"], 0.0);
  EXPECT_EQ(copy["dur"], 1.5);
  EXPECT_EQ(copy["tid"], 1);
  EXPECT_EQ(copy["args"], nlohmann::json::parse(R"({"row":0,"rows":8,"peer":0})"));
  EXPECT_EQ(maths["ts"], 1.6);
  EXPECT_EQ(maths["dur"], 2.4);
  EXPECT_EQ(maths["args"]["n"], 3);
  auto const from = find("s", "releases"), to = find("f", "releases");
  EXPECT_EQ(from["id"], to["id"]);
  EXPECT_EQ(from["ts"], 1.499);
  EXPECT_EQ(from["tid"], 1);
  EXPECT_EQ(to["ts"], 1.6);
  EXPECT_EQ(to["tid"], 0);
  EXPECT_EQ(json["traceEvents"].size(), 10u);
}

/// Every tag is closed, in order; enough of XML for what the writer writes.
bool balanced(std::string const& xml) {
  std::vector<std::string> open;
  for (size_t at = xml.find('<'); at != xml.npos; at = xml.find('<', at + 1)) {
    size_t const end = xml.find('>', at);
    if (end == xml.npos) return false;
    std::string const tag = xml.substr(at + 1, end - at - 1);
    std::string const name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty();
}

TEST(Svg, ShowsTitleFactsLegendAxisAndSpans) {
  std::string const svg = to_svg(one_copy());
  EXPECT_TRUE(balanced(svg));
  for (char const* part : {"m &lt; 64 &amp; &quot;n&quot;", "link: declared", "Workers multiply 60 % of the time",
                           "multiplies a tile", "copies rows", "rank 0", ">copy engine<", ">worker 0<", ">60 % maths<",
                           "maths, rows 0 to 7, block 3 of columns: 2400 ns", ">µs<"})
    EXPECT_HAS(svg, part);
  EXPECT_EQ(svg.find("waits for rows"), svg.npos) << "what does not occur is not in the legend";
}

TEST(Svg, StaysSmallWithManySpans) {
  Timeline t;
  for (int32_t rank = 0; rank < 8; ++rank)
    for (int64_t i = 0; i < 20'000; ++i) {
      Span s;
      s.rank = rank, s.kind = SpanKind::kMaths, s.begin_ns = i * 1000, s.end_ns = s.begin_ns + 900;
      t.spans.push_back(s);
      s.kind = SpanKind::kStore, s.begin_ns = s.end_ns, s.end_ns = (i + 1) * 1000;
      t.spans.push_back(s);
    }
  std::string const svg = to_svg(t);
  EXPECT_TRUE(balanced(svg));
  EXPECT_LT(svg.size(), 200'000u);
  EXPECT_HAS(svg, "class=\"maths\" d=\"M168 2.5h936v27.5");  // eleven twelfths of the lane, from end to end
  EXPECT_HAS(svg, "class=\"store\" d=\"M168 0h936v2.5");
}

TEST(Svg, DrawsAnEmptyTimeline) {
  EXPECT_TRUE(balanced(to_svg({})));
  Timeline instant = one_copy();
  for (Span& span : instant.spans) span.begin_ns = span.end_ns = 7;
  EXPECT_TRUE(balanced(to_svg(instant)));
}

TEST(Svg, WrapsBetweenWords) {
  EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("", 7), std::vector<std::string>{});
  EXPECT_EQ(wrap("abcdefghij", 4), (std::vector<std::string>{"abcd", "efgh", "ij"}));
  EXPECT_EQ(wrap("ab\u00fcd", 3), (std::vector<std::string>{"ab\u00fc", "d"}));
}

TEST(Trace, WritesBothFilesOrNone) {
  TemporaryFolder folder;
  TraceFiles files = write_trace(folder / "t.json", one_copy());
  EXPECT_EQ(files.json, folder / "t.json");
  EXPECT_EQ(files.svg, folder / "t.svg");
  EXPECT_EQ(bytes_of(files.json), to_chrome_json(one_copy()));
  EXPECT_EQ(bytes_of(files.svg), to_svg(one_copy()));
  files = write_trace(folder / "p.svg", one_copy());
  EXPECT_EQ(files.json, folder / "p.json");
  files = write_trace(folder / "plain", one_copy());
  EXPECT_EQ(files.json, folder / "plain");
  EXPECT_EQ(files.svg, folder / "plain.svg");
  EXPECT_EQ(folder.count(), 6u);
  std::filesystem::create_directory(folder / "x.svg");
  EXPECT_HAS(invalid([&] { write_trace(folder / "x.json", one_copy()); }), "cannot write");
  EXPECT_EQ(folder.count(), 7u);
}

}  // namespace
}  // namespace flux
