#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/flux.h"
#include "temporary_folder.h"

namespace flux::test {
namespace {

std::string const kGemm = FLUX_SOURCE_DIR "/bench/results/2026-12-01-h200x1-gemm.json",
                  kHost = FLUX_SOURCE_DIR "/bench/results/2026-11-29-cpux2-host.json";

TEST(Compare, AFileWithItselfIsTheSame) {
  Outcome const done = flux("compare --json " + kGemm + " " + kGemm);
  EXPECT_EQ(done.code, 0) << done.text;
  auto const json = nlohmann::json::parse(done.text);
  EXPECT_EQ(json["slower"], 0);
  EXPECT_EQ(json["faster"], 0);
  EXPECT_GT(json["rows"].size(), 100u);
}

TEST(Compare, ARegressionIsCodeOne) {
  TemporaryFolder folder;
  std::ifstream in(kGemm);
  auto file = nlohmann::json::parse(in);
  for (auto& row : file["rows"])
    if (row["method"] == "flux")
      for (char const* field : {"total_us", "p10_us", "p90_us"}) row[field] = row[field].get<double>() * 1.5;
  std::string const slower = (folder.path() / "slower.json").string();
  std::ofstream(slower) << file.dump();
  Outcome const worse = flux("compare " + kGemm + " " + slower);
  EXPECT_EQ(worse.code, 1) << worse.text;
  EXPECT_NE(worse.text.find("1.500   slower"), std::string::npos) << worse.text;
  EXPECT_EQ(flux("compare " + slower + " " + kGemm).code, 0) << "faster is no regression";
  EXPECT_EQ(flux("compare --threshold 60 " + kGemm + " " + slower).code, 0);
}

TEST(Compare, BadInputGetsOneSentenceAndCodeTwo) {
  TemporaryFolder folder;
  std::string const torn = (folder.path() / "torn.json").string();
  std::ofstream(torn) << "{\"schema\": 1, \"suite\": ";
  for (auto const& [arguments, says] : {std::pair{kGemm + " nowhere.json", "nowhere.json"},
                                        {kGemm + " " + torn, "torn.json"},
                                        {kGemm + " " + kHost, "no row in common"},
                                        {kGemm, "after is required"}}) {
    Outcome const done = flux("compare " + arguments);
    EXPECT_EQ(done.code, 2) << arguments << "\n" << done.text;
    EXPECT_NE(done.text.find(says), std::string::npos) << done.text;
  }
}

}  // namespace
}  // namespace flux::test
