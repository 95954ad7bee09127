#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/flux.h"
#include "temporary_folder.h"

namespace flux::test {
namespace {

std::string const kHost = FLUX_SOURCE_DIR "/bench/results/2026-11-29-cpux2-host.json";

TEST(ReportVerb, WritesAPageAndCountsWhatIsInIt) {
  TemporaryFolder folder;
  std::string const page = folder / "report.html";
  Outcome const done = flux("report --json " + kHost + " -o " + page);
  EXPECT_EQ(done.code, 0) << done.text;
  EXPECT_EQ(done.json()["rows"], 14);
  EXPECT_EQ(done.json()["page"], page);
  EXPECT_EQ(done.json()["files"][0]["suite"], "host");
  EXPECT_EQ(bytes_of(page).find("<!doctype html>"), 0u);
  EXPECT_EQ(folder.count(), 1u);
}

TEST(ReportVerb, DrawsWhatRunRecorded) {
  TemporaryFolder folder;
  std::string const trace = folder / "t.json", page = folder / "report.html";
  ASSERT_EQ(flux("run gemm_rs --m 64 --n 64 --k 64 --ranks 2 --samples 0 --timeline " + trace).code, 0);
  Outcome const done = flux("report --json --timeline " + trace + " " + kHost + " -o " + page);
  EXPECT_EQ(done.code, 0) << done.text;
  EXPECT_EQ(done.json()["rows"], 14) << "a result file behind --timeline FILE is one";
  EXPECT_GT(done.json()["timelines"][0]["spans"], 0);
  Outcome const alone = flux("report --json --timeline " + trace + " -o " + page);
  EXPECT_EQ(alone.code, 0) << alone.text;
  EXPECT_EQ(alone.json()["rows"], 0);
}

TEST(ReportVerb, SaysWhatItLeavesOut) {
  TemporaryFolder folder;
  std::string const page = folder / "report.html";
  Outcome const done = flux("report nowhere.json " + kHost + " -o " + page);
  EXPECT_EQ(done.code, 0) << done.text;
  EXPECT_NE(done.text.find("flux: left out: "), std::string::npos) << done.text;
  EXPECT_NE(done.text.find("left out: 1"), std::string::npos) << done.text;
  EXPECT_NE(bytes_of(page).find("nowhere.json"), std::string::npos);
}

TEST(ReportVerb, BadInputLeavesWhatWasThere) {
  TemporaryFolder folder;
  std::string const page = folder.file("report.html", "old"), torn = folder.file("torn.json", "{\"schema\": 1,");
  for (auto const& [arguments, says] :
       {std::pair{torn + " -o " + page, "no file is good"},
        {"-o " + page, "nothing to report"},
        {kHost + " -o " + (folder / "no/such/report.html").string(), "cannot be written"},
        {kHost + " -o " + folder.path().string(), "cannot be written"},
        {kHost + " " + torn + " -o " + torn, "is an input"}}) {
    Outcome const done = flux("report " + arguments);
    EXPECT_EQ(done.code, 2) << arguments << "\n" << done.text;
    EXPECT_NE(done.text.find(says), std::string::npos) << done.text;
    EXPECT_EQ(bytes_of(page), "old");
    EXPECT_EQ(folder.count(), 2u);
  }
}

}  // namespace
}  // namespace flux::test
