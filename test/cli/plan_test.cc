// flux plan: text, JSON, a timeline, and the check against result files.
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/flux.h"
#include "temporary_folder.h"

namespace flux::test {
namespace {

std::string const kFc1 = "plan ag_gemm --m 2048 --n 49152 --k 12288 --machine ";

TEST(Plan, ShowsTheChoiceAndWhyNotTheRest) {
  Outcome const done = flux(kFc1 + "h800");
  ASSERT_EQ(done.code, 0) << done.text;
  for (char const* part : {"ag_gemm m 2048, n 49152, k 12288, 8 ranks, bf16 on h800, simulated", "GEMM alone", "floor",
                           "one after the other", "its GEMM alone takes", "plan: fused=yes"})
    EXPECT_NE(done.text.find(part), std::string::npos) << part << "\n" << done.text;
}

TEST(Plan, TheLineIsOneThatRunAccepts) {
  Outcome const done = flux(kFc1 + "l20 --json");
  ASSERT_EQ(done.code, 0) << done.text;
  auto const json = done.json();
  EXPECT_GE(json["total_us"].get<double>(), json["floor_us"].get<double>());
  EXPECT_GT(json["candidates"].size(), 50u);
  for (auto const& candidate : json["candidates"])
    EXPECT_TRUE(candidate.contains("out") || candidate["total_us"].get<double>() > 0) << candidate;
  Outcome const ran = flux("run ag_gemm --m 64 --n 64 --k 64 --ranks 2 --samples 0 --json --plan '" +
                           json["plan"].get<std::string>() + "'");
  ASSERT_EQ(ran.code, 0) << ran.text;
}

TEST(Plan, EveryNamedMachineAndAFile) {
  for (std::string machine : {"a100-pcie", "a100-sxm", "a800", "h800", "h100", "h200", "l20", "rtx4090"})
    for (std::string op : {"ag_gemm", "gemm_rs", "gemm_ar"})
      EXPECT_EQ(flux("plan " + op + " --m 300 --n 4096 --k 4096 --tp 3 --machine " + machine).code, 0) << machine << op;
  TemporaryFolder folder;
  auto const torn = folder.file("torn.json", "{\"schema\": 1");
  Outcome const done = flux(kFc1 + torn.string());
  EXPECT_EQ(done.code, 2);
  EXPECT_NE(done.text.find("truncated"), std::string::npos) << done.text;
}

// An A100 multiplies int8 twice as fast as bf16, and gathers half the bytes; partial sums stay bf16.
TEST(Plan, OperandsOfOneByteTakeHalf) {
  auto of = [](std::string const& op, std::string const& dtype, std::string const& machine) {
    return flux("plan " + op + " --m 2048 --n 16384 --k 12288 --json --machine " + machine + " --dtype " + dtype)
        .json();
  };
  auto ratio = [](nlohmann::json const& a, nlohmann::json const& b, char const* field) {
    return a[field].get<double>() / b[field].get<double>();
  };
  auto const int8 = of("ag_gemm", "int8", "a100-pcie"), bf16 = of("ag_gemm", "bf16", "a100-pcie");
  EXPECT_NEAR(ratio(int8, bf16, "gemm_us"), 0.5, 0.05);
  EXPECT_NEAR(ratio(int8, bf16, "comm_us"), 0.5, 0.05);
  EXPECT_LT(ratio(int8, bf16, "total_us"), 0.55);
  EXPECT_NEAR(ratio(of("gemm_rs", "int8", "a100-pcie"), of("gemm_rs", "bf16", "a100-pcie"), "comm_us"), 1, 1e-9);
  EXPECT_NEAR(ratio(of("ag_gemm", "fp8", "l20"), of("ag_gemm", "int8", "l20"), "total_us"), 1, 1e-9);
  EXPECT_EQ(of("ag_gemm", "int8", "h200")["plan"].get<std::string>().find("tile=128x512"), std::string::npos);
}

TEST(Plan, DrawsTheSimulatedCall) {
  TemporaryFolder folder;
  Outcome const done = flux("plan gemm_rs --m 512 --n 4096 --k 4096 --tp 4 --timeline " + (folder / "t.json").string());
  ASSERT_EQ(done.code, 0) << done.text;
  EXPECT_TRUE(std::filesystem::exists(folder / "t.json"));
  EXPECT_NE(bytes_of(folder / "t.svg").find("<svg"), std::string::npos);
}

TEST(Plan, BadInputGetsOneSentenceAndCodeTwo) {
  for (auto const& [arguments, says] : {std::pair{"plan", "which operator"},
                                        {"plan gemm_xx --m 8 --n 8 --k 8", "gemm_xx"},
                                        {"plan ag_gemm --n 8 --k 8", "m is 0"},
                                        {"plan ag_gemm --m 8 --n 8 --k 8 --tp 17", "tp is 17"},
                                        {"plan ag_gemm --m 8 --n 8 --k 8 --machine tpu", "h800"},
                                        {"plan ag_gemm --m 8 --n 8 --k 8 --dtype fp32", "nothing serves"},
                                        {"plan ag_gemm --m 8 --n 8 --k 16 --dtype fp8 --machine a100-sxm", "8.9"},
                                        {"plan ag_gemm --m 8 --n 8 --k 16 --dtype int8 --weight [in,out]", "[out,in]"},
                                        {"plan gemm_rs --m 8 --n 8 --k 24 --dtype int8", "multiple of 16"},
                                        {"plan gemm_rs --m 8 --n 8 --k 8 --gated", "--gated is for ag_gemm"},
                                        {"plan --check nowhere.json", "nowhere.json"}}) {
    Outcome const done = flux(arguments);
    EXPECT_EQ(done.code, 2) << arguments << "\n" << done.text;
    EXPECT_NE(done.text.find(says), std::string::npos) << done.text;
    EXPECT_EQ(std::count(done.text.begin(), done.text.end(), '\n'), 1) << done.text;
  }
}

// The bars of the simulator, over every file measured on an H200: docs/simulator.md states these figures.
TEST(Plan, SimulatedTimesAreThoseOfTheResultFiles) {
  std::string files;
  for (auto const& file : std::filesystem::directory_iterator(FLUX_SOURCE_DIR "/bench/results"))
    if (file.path().filename().string().find("h200") != std::string::npos) files += " " + file.path().string();
  Outcome const done = flux("plan --json --check" + files);
  ASSERT_EQ(done.code, 0) << done.text;
  auto const json = done.json();
  EXPECT_GT(json["rows"].size(), 700u);
  EXPECT_LE(json["median"].get<double>(), 0.10);
  EXPECT_LE(json["p90"].get<double>(), 0.20);
}

}  // namespace
}  // namespace flux::test
