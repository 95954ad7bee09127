// flux tune and flux doctor --measure: on the host engine, for real.
#include <gtest/gtest.h>

#include "cli/flux.h"
#include "temporary_folder.h"

namespace flux::test {
namespace {

std::string const kSmall = "tune gemm_rs --host --m 96 --n 64 --k 64 --ranks 2 --rounds 2 --candidates 3 ";

TEST(Tune, TimesKeepsAndFindsAgain) {
  TemporaryFolder folder;
  std::string const cache = (folder / "plans.json").string();
  Outcome const done = flux(kSmall + "--json --cache " + cache);
  ASSERT_EQ(done.code, 0) << done.text;
  auto const json = done.json();
  EXPECT_GT(json["measured_us"].get<double>(), 0);
  EXPECT_GE(json["timed"].size(), 3u);
  EXPECT_EQ(json["note"], "");
  auto const kept = nlohmann::json::parse(bytes_of(cache));
  ASSERT_EQ(kept["plans"].size(), 1u);
  EXPECT_EQ(kept["plans"][0]["plan"], json["plan"]);
  Outcome const ran =
      flux("run gemm_rs --m 96 --n 64 --k 64 --ranks 2 --samples 0 --plan '" + json["plan"].get<std::string>() + "'");
  EXPECT_EQ(ran.code, 0) << ran.text;
}

TEST(Tune, EveryOperatorOnThreadsAndProcesses) {
  TemporaryFolder folder;
  for (std::string op : {"ag_gemm", "gemm_rs", "gemm_ar"})
    for (std::string world : {"threads", "processes"}) {
      Outcome const done =
          flux("tune " + op + " --host --m 40 --n 48 --k 64 --ranks 2 --rounds 1 --candidates 2 --world " + world +
               " --cache " + (folder / "plans.json").string());
      EXPECT_EQ(done.code, 0) << done.text;
      EXPECT_NE(done.text.find("kept in"), std::string::npos) << done.text;
    }
}

TEST(Tune, ABrokenCacheIsASentenceAndNoFailure) {
  TemporaryFolder folder;
  auto const torn = folder.file("plans.json", "{\"kind\": \"flux tu");
  Outcome const done = flux(kSmall + "--cache " + torn.string());
  EXPECT_EQ(done.code, 0) << done.text;
  EXPECT_NE(done.text.find("stays as it is"), std::string::npos) << done.text;
  EXPECT_EQ(bytes_of(torn), "{\"kind\": \"flux tu");
}

TEST(Tune, BadInputGetsOneSentenceAndCodeTwo) {
  for (auto const& [arguments, says] : {std::pair{"tune", "op is required"},
                                        {"tune ag_gemm --m 8 --n 8 --k 8 --dtype int4", "int4"},
                                        {"tune ag_gemm --m 0 --n 8 --k 8", "m is 0"},
                                        {"tune ag_gemm --m 8 --n 8 --k 8 --rounds 0", "rounds"}}) {
    Outcome const done = flux(arguments);
    EXPECT_EQ(done.code, 2) << arguments << "\n" << done.text;
    EXPECT_NE(done.text.find(says), std::string::npos) << done.text;
  }
}

TEST(Doctor, MeasuresAMachineThatPlanReads) {
  TemporaryFolder folder;
  std::string const machine = (folder / "host.json").string();
  Outcome const measured = flux("doctor --host --measure " + machine);
  ASSERT_EQ(measured.code, 0) << measured.text;
  Outcome const planned = flux("plan ag_gemm --m 256 --n 512 --k 512 --tp 2 --dtype fp32 --json --machine " + machine);
  ASSERT_EQ(planned.code, 0) << planned.text;
  EXPECT_EQ(planned.json()["machine"], "this host");
}

}  // namespace
}  // namespace flux::test
