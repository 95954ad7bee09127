// flux simulate: phases, methods, the table beside the published figures.
#include <gtest/gtest.h>

#include "cli/flux.h"

namespace flux::test {
namespace {

TEST(Simulate, SaysWhereTwoNodesPay) {
  auto const rows = flux("simulate nodes --machine h800 --json").json()["rows"];
  ASSERT_EQ(rows.size(), 6u);
  for (auto const& row : rows) EXPECT_EQ(row["pays"], row["two_over_one"] > 1) << row;
  EXPECT_EQ(rows[4]["m"], 8192);
  EXPECT_EQ(rows[4]["published_speed_up"], 1.55);
  EXPECT_NEAR(rows[4]["speed_up"].get<double>(), 1.55, 0.2);
}

// Ranks beyond a node take another.
TEST(Simulate, StepsKnowNodes) {
  auto nodes = [](std::string const& more) {
    return flux("simulate decode --model llama3-8b --machine h800 --tp 16 --batch 16 --json" + more).json()["nodes"];
  };
  EXPECT_EQ(nodes(""), 2);
  EXPECT_EQ(nodes(" --nodes 1"), 1);
}

TEST(Simulate, EveryPhaseAsTextAndJson) {
  for (std::string phase : {"train", "prefill", "decode"}) {
    std::string const call = "simulate " + phase + " --model gpt3-175b --machine a100-sxm";
    Outcome const text = flux(call);
    ASSERT_EQ(text.code, 0) << text.text;
    for (char const* part : {"tensor-parallel communication", "speed-up", "published of `none`"})
      EXPECT_NE(text.text.find(part), std::string::npos) << text.text;
    Outcome const done = flux(call + " --json");
    ASSERT_EQ(done.code, 0) << done.text;
    auto const json = done.json();
    double sum = 0;
    for (auto const& [name, us] : json["parts"].items()) sum += us.get<double>();
    EXPECT_NEAR(sum, json["step_us"].get<double>(), 1);
    EXPECT_EQ(json["step_us"], json["methods"]["flux"]["step_us"]);
    EXPECT_GE(json["methods"]["flux"]["speed_up"].get<double>(), 1);
    EXPECT_EQ(json["methods"]["none"]["speed_up"].get<double>(), 1);
  }
}

TEST(Simulate, AMethodsPartsAreShown) {
  auto const none = flux("simulate prefill --method none --json").json(),
             fused = flux("simulate prefill --json").json();
  EXPECT_EQ(none["step_us"], fused["methods"]["none"]["step_us"]);
  EXPECT_LT(fused["step_us"].get<double>(), none["step_us"].get<double>());
}

// The bar: six of the eight published speed-ups over Megatron-LM and vLLM within 0.15.
TEST(Simulate, TheTableIsNearThePublishedOne) {
  Outcome const done = flux("simulate table --json");
  ASSERT_EQ(done.code, 0) << done.text;
  auto const json = done.json();
  EXPECT_EQ(json["cells"].size(), 9u);
  EXPECT_EQ(json["compared"], 8);
  EXPECT_GE(json["within"].get<int>(), 6);
  for (auto const& cell : json["cells"]) {
    bool const outside = !cell["within"].get<bool>() && !cell["published_over_none"].is_null();
    EXPECT_EQ(cell.contains("why"), outside) << cell;
  }
  EXPECT_NE(flux("simulate table").text.find("of 8 published speed-ups"), std::string::npos);
}

TEST(Simulate, BadInputGetsOneSentenceAndCodeTwo) {
  for (auto const& [arguments, says] : {std::pair{"simulate", "subcommand"},
                                        {"simulate train --model gpt9", "llama2-70b"},
                                        {"simulate train --machine tpu", "h800"},
                                        {"simulate train --batch 3 --dp 2", "multiple of"},
                                        {"simulate decode --tp 5", "64 heads"},
                                        {"simulate prefill --method magic", "flux, none, chunked"}}) {
    Outcome const done = flux(arguments);
    EXPECT_EQ(done.code, 2) << arguments << "\n" << done.text;
    EXPECT_NE(done.text.find(says), std::string::npos) << done.text;
  }
}

}  // namespace
}  // namespace flux::test
