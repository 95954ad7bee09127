// flux run: operators on random data, as text, as JSON, as a timeline, on threads and on processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "cli/flux.h"
#include "temporary_folder.h"

namespace flux::test {
namespace {

TEST(Run, EveryOperatorIsRightOnThreadsAndProcesses) {
  for (std::string op : {"ag_gemm", "gemm_rs", "gemm_ar"})
    for (std::string world : {"threads", "processes"}) {
      auto const done = on_host("run " + op + " --m 70 --n 96 --k 72 --ranks 3 --samples 1 --json --world " + world);
      ASSERT_EQ(done.code, 0) << done.text;
      auto const json = done.json();
      EXPECT_EQ(json["op"], op);
      EXPECT_EQ(json["tp"], 3);
      EXPECT_EQ(json["world"], world);
      EXPECT_TRUE(json["right"]);
      EXPECT_LT(json["error"].get<double>(), 1e-5);
      EXPECT_GT(json["total_us"].get<double>(), 0.0);
      EXPECT_TRUE(json["link"]["declared"]);
      EXPECT_DOUBLE_EQ(json["ect_us"].get<double>(), json["total_us"].get<double>() - json["gemm_us"].get<double>());
    }
}

TEST(Run, EveryDtypeLayoutAndEpilogue) {
  for (std::string dtype : {"fp32", "bf16", "fp16", "fp64"})
    for (std::string weight : {"[out,in]", "[in,out]"}) {
      auto const done =
          on_host("run ag_gemm --m 33 --n 64 --k 40 --ranks 2 --samples 0 --bias --gated --activation silu --dtype " +
                  dtype + " --weight '" + weight + "'");
      EXPECT_EQ(done.code, 0) << done.text;
      EXPECT_NE(done.text.find("right"), std::string::npos) << done.text;
      EXPECT_EQ(on_host("run gemm_rs --m 33 --n 24 --k 40 --ranks 2 --samples 0 --bias --dtype " + dtype +
                        " --weight '" + weight + "'")
                    .code,
                0);
    }
}

TEST(Run, OperandsOfOneByteWithTheirScales) {
  for (std::string dtype : {"int8", "fp8"}) {
    for (std::string op : {"ag_gemm --gated --activation silu", "gemm_rs", "gemm_ar"}) {
      auto const done =
          on_host("run " + op + " --m 33 --n 64 --k 96 --ranks 3 --samples 1 --bias --json --dtype " + dtype);
      ASSERT_EQ(done.code, 0) << done.text;
      EXPECT_TRUE(done.json()["right"]) << done.text;
      EXPECT_GT(done.json()["error"].get<double>(), 1e-5) << "rounded to bf16";
    }
    for (auto const& [rest, says] :
         {std::pair{" --k 24", "multiple of 16"}, {" --k 64 --weight [in,out]", "[out,in]"}}) {
      auto const done = on_host("run ag_gemm --m 33 --n 64 --ranks 2 --samples 0 --dtype " + dtype + rest);
      EXPECT_EQ(done.code, 2) << done.text;
      EXPECT_NE(done.text.find(says), std::string::npos) << done.text;
    }
  }
}

TEST(Run, EmptyAndTinyProblems) {
  EXPECT_EQ(on_host("run ag_gemm --m 0 --n 8 --k 8 --ranks 4 --samples 1").code, 0);
  EXPECT_EQ(on_host("run gemm_rs --m 1 --n 1 --k 1 --ranks 5 --samples 1").code, 0);
  EXPECT_EQ(on_host("run gemm_ar --m 2 --n 0 --k 3 --ranks 2 --samples 1").code, 0);
}

TEST(Run, APlanIsUsedAndPrinted) {
  auto const done =
      on_host("run gemm_rs --m 64 --n 64 --k 64 --ranks 2 --samples 0 --json --plan 'route=stage tile=16x32'");
  ASSERT_EQ(done.code, 0) << done.text;
  std::string const plan = done.json()["plan"];
  EXPECT_NE(plan.find("route=stage"), std::string::npos);
  EXPECT_NE(plan.find("tile=16x32"), std::string::npos);
  EXPECT_EQ(on_host("run gemm_rs --m 64 --n 64 --k 64 --ranks 2 --samples 0 --plan '" + plan + "'").code, 0);
}

TEST(Run, ATimelineHasEveryRankAndTile) {
  TemporaryFolder folder;
  std::string const path = folder / "trace.json";
  for (std::string world : {"threads", "processes"}) {
    auto const done = on_host("run ag_gemm --m 64 --n 64 --k 64 --ranks 2 --samples 0 --plan tile=16x16 --timeline " +
                              path + " --world " + world);
    ASSERT_EQ(done.code, 0) << done.text;
    std::ifstream file(path);
    auto const trace = nlohmann::json::parse(file);
    std::array<int, 2> maths{};
    for (auto const& event : trace["traceEvents"])
      if (event["ph"] == "X" && event["cat"] == "maths") ++maths.at(event["pid"].get<size_t>());
    EXPECT_EQ(maths[0], 8);  // 4 x 2 tiles of this rank's 64 x 32
    EXPECT_EQ(maths[1], 8);
    EXPECT_TRUE(std::filesystem::exists(folder / "trace.svg"));
  }
}

TEST(Run, BadInputGetsOneSentenceAndCodeTwo) {
  struct Case {
    char const *arguments, *says;
  };
  for (Case const& c : {Case{"run ag_gemm --m 8 --n 8", "--k is required"},
                        {"run ag_gemm --m -3 --n 8 --k 8", "m is -3"},
                        {"run ag_gemm --m x --n 8 --k 8", "x"},
                        {"run ag_gemm --m 8 --n 8 --k 8 --dtype int4", "allowed are fp32, bf16, fp16, fp64, int8, fp8"},
                        {"run ag_gemm --m 8 --n 8 --k 8 --ranks 17", "17"},
                        {"run ag_gemm --m 8 --n 8 --k 8 --ranks 0", "0"},
                        {"run ag_gemm --m 8 --n 9 --k 8 --gated", "even n"},
                        {"run ag_gemm --m 8 --n 8 --k 8 --activation tanh", "allowed are none, relu"},
                        {"run ag_gemm --m 8 --n 8 --k 8 --weight [a,b]", "[out,in]"},
                        {"run ag_gemm --m 8 --n 8 --k 8 --plan 'tile=0x4'", "tile takes auto, or ROWSxCOLUMNS"},
                        {"run ag_gemm --m 8 --n 8 --k 8 --plan 'speed=high'", "keys fused, order"},
                        {"run ag_gemm --m 8 --n 8 --k 8 --plan 'transport=pull path=ring'", "path=direct"},
                        {"run ag_gemm --m 8 --n 8 --k 8 --timeline /nowhere/t.json", "cannot be written"},
                        {"run ag_gemm --m 2147483648 --n 2147483648 --k 2147483648", "memory"},
                        {"run gemm_rs --m 8 --n 8 --k 8 --gated", "--gated"},
                        {"run ag_gemm --m 8 --n 8 --k 8 --colour blue", "--colour"},
                        {"run", "subcommand"},
                        {"bench --suite none", "there are"},
                        {"bench --samples 0", "at least 1"},
                        {"bench --resume none.json", "no such file; --out names a new one"},
                        {"bench --out /nowhere/r.json", "cannot be written"},
                        {"bench --suite ablation --mirror wifi", "pcie"},
                        {"bench --suite core --world wifi", "threads"},
                        {"bench --suite core --world threads", "--world mirror or processes"},
                        {"bench --suite gemm --world processes", "--suite gemm has no --world processes"},
                        {"bench --suite host --world mirror", "--suite host has no --world mirror"},
                        {"bench --suite core --world processes --mirror pcie", "give one of the two"},
                        {"bench --suite core --ranks 17", "17"},
                        {"launch -n 2", "command"},
                        {"fly", "fly"}}) {
    auto const done = flux(c.arguments);
    EXPECT_EQ(done.code, 2) << c.arguments << "\n" << done.text;
    EXPECT_NE(done.text.find(c.says), std::string::npos) << c.arguments << "\n" << done.text;
    EXPECT_EQ(std::count(done.text.begin(), done.text.end(), '\n'), 1) << c.arguments << "\n" << done.text;
  }
}

// What GPUs compute: where one of compute capability 9.0 is. Elsewhere, one sentence.
TEST(Run, OnGpus) {
  bool const here = hopper();
  for (std::string op : {"ag_gemm", "gemm_rs", "gemm_ar"})
    for (std::string world : {"", "processes", "threads"}) {
      std::string const chosen = world.empty() ? "" : " --world " + world;
      auto const done = flux("run " + op + " --gpu --m 200 --n 96 --k 128 --ranks 2 --bias --json" + chosen);
      if (!here) {
        EXPECT_EQ(done.code, 2) << done.text;
        EXPECT_EQ(std::count(done.text.begin(), done.text.end(), '\n'), 1) << done.text;
        continue;
      }
      ASSERT_EQ(done.code, 0) << done.text;
      auto const json = done.json();
      EXPECT_EQ(json["dtype"], "bf16");
      EXPECT_TRUE(json["right"]);
      EXPECT_TRUE(json["gpu"]);
      EXPECT_TRUE(json.contains("not_timed") || json["none_us"].get<double>() > 0) << done.text;
      EXPECT_TRUE(world != "processes" || json["world"] == world);
    }
  EXPECT_EQ(flux("run gemm_rs --gpu --m 8 --n 8 --k 8 --link-gbps 3").code, 2);
  EXPECT_EQ(flux("run gemm_rs --gpu --m 8 --n 8 --k 8 --host").code, 2);
}

TEST(Run, SaysWhereRanksRunAndWhy) {
  std::string const base = "run gemm_rs --m 16 --n 16 --k 16 --ranks 2 --samples 0 --json ";
  for (auto [arguments, why] : {std::pair{"--host", "--host"},
                                {"--link-gbps 3", "--link-gbps"},
                                {"--dtype fp32", "not fp32"},
                                {"--plan slots=fp32", "no slots=fp32"}}) {
    auto const done = flux(base + arguments);
    ASSERT_EQ(done.code, 0) << done.text;
    EXPECT_FALSE(done.json()["gpu"]) << arguments;
    EXPECT_NE(std::string(done.json()["chosen"]).find(why), std::string::npos) << done.text;
  }
  auto const by_itself = flux(base);
  EXPECT_EQ(by_itself.json()["gpu"], hopper()) << by_itself.text;
}

TEST(Run, HelpNamesEveryVerb) {
  auto const done = flux("--help");
  EXPECT_EQ(done.code, 0);
  for (std::string verb : {"run", "bench", "doctor", "launch"})
    EXPECT_NE(done.text.find(verb), std::string::npos) << verb;
}

// On one GPU of compute capability 9.0: two ranks share it, every method is checked, nothing is recorded. Elsewhere,
// one sentence of whoever started the ranks.
TEST(Bench, RanksThatShareAGpuAreCheckedAndNotRecorded) {
  TemporaryFolder folder;
  std::ofstream(folder / "w.json") << R"({"workloads": [
      {"name": "ag", "op": "ag_gemm", "n": 512, "k": 256, "m": [7, 256], "tp": [2], "dtype": ["bf16"], "tier": "mine",
       "why": "a test", "weight": "[out,in]", "epilogue": "none", "plans": ["transport=pull", "path=ring"]},
      {"name": "rs", "op": "gemm_rs", "n": 256, "k": 512, "m": [7, 256], "tp": [2], "dtype": ["bf16"], "tier": "mine",
       "why": "a test", "weight": "[out,in]", "epilogue": "none", "plans": ["route=stage"]},
      {"name": "ar", "op": "gemm_ar", "n": 256, "k": 512, "m": [7], "tp": [2], "dtype": ["bf16"], "tier": "mine",
       "why": "a test", "weight": "[out,in]", "epilogue": "none"}]})";
  std::string const there = (folder / "").string();
  auto const done = flux("bench --suite mine --world processes --tp 2 --samples 1 --timing graph --json --workloads " +
                         there + "w.json --out " + there);
  if (!hopper()) {
    EXPECT_EQ(done.code, 2) << done.text;
    EXPECT_EQ(std::count(done.text.begin(), done.text.end(), '\n'), 1) << done.text;
    return;
  }
  if (done.text.find("cuBLASLt was not found") != std::string::npos) GTEST_SKIP() << done.text;
  int const gpus = static_cast<int>(flux("doctor --json").json()["gpus"].size());
  ASSERT_EQ(done.code, 0) << done.text;
  auto const begin = done.text.find('{');  // behind what is said on stderr
  auto const json = nlohmann::json::parse(done.text.substr(begin, done.text.rfind('}') + 1 - begin));
  std::map<std::string, int> methods;
  for (auto const& row : json["rows"]) {
    ++methods[row["method"]];
    EXPECT_EQ(row["world"], "processes") << row;
    EXPECT_EQ(row["tp"], 2) << row;
    EXPECT_EQ(row["samples"], 1) << row;
    EXPECT_TRUE(row["incoming"].is_null()) << row;
    EXPECT_TRUE(row["duplex"].get<bool>()) << row;
    if (row["method"] == "beside") continue;  // leaves nothing to check
    EXPECT_LT(row["error"].get<double>(), 3e-3) << row;
  }
  EXPECT_EQ(methods["none"], 5);
  EXPECT_EQ(methods["chunked"], 4);
  EXPECT_EQ(methods["flux"], 5 + 4 + 2);
  if (gpus > 1) return;
  EXPECT_FALSE(methods.contains("nccl"));
  EXPECT_NE(done.text.find("NCCL takes one rank a GPU"), std::string::npos) << done.text;
  EXPECT_NE(done.text.find("times mean nothing"), std::string::npos) << done.text;
  int files = 0;
  for (auto const& entry : std::filesystem::directory_iterator(there)) files += entry.path().extension() == ".json";
  EXPECT_EQ(files, 1);  // the workloads
}

TEST(Launch, StartsRanksAndPassesTheirExitCodeOn) {
  EXPECT_EQ(flux("launch -n 3 -- sh -c 'exit $FLUX_RANK' --grace-seconds 5").code == 0, false);
  auto const ranks = flux("launch -n 2 -- sh -c 'echo rank $FLUX_RANK of $FLUX_WORLD_SIZE'");
  EXPECT_EQ(ranks.code, 0);
  EXPECT_NE(ranks.text.find("rank 0 of 2"), std::string::npos);
  EXPECT_NE(ranks.text.find("rank 1 of 2"), std::string::npos);
  auto const killed = flux("launch -n 2 -- sh -c 'if [ $FLUX_RANK = 1 ]; then kill -9 $$; fi'");
  EXPECT_EQ(killed.code, 128 + 9);
  EXPECT_NE(killed.text.find("rank 1 was killed by signal 9"), std::string::npos) << killed.text;
  EXPECT_EQ(flux("launch -n 1 -- /no/such/program").code, 127);
}

TEST(Doctor, SaysWhatIsThereAndWhatIsUsed) {
  auto const done = flux("doctor --json");
  ASSERT_EQ(done.code, 0) << done.text;
  std::map<std::string, bool> used;
  auto const json = done.json();
  for (auto const& finding : json["findings"]) used[finding["subject"]] = finding["used"];
  EXPECT_TRUE(used.at("cpu"));
  EXPECT_TRUE(used.at("host engine"));
  EXPECT_TRUE(used.at("world threads"));
  EXPECT_TRUE(used.contains("gpu"));
  ASSERT_TRUE(json["gpus"].is_array());
  size_t const gpus = json["gpus"].size();
  EXPECT_EQ(json["links"].size(), gpus * (gpus > 0 ? gpus - 1 : 0));
  for (auto const& link : json["links"]) EXPECT_EQ(link["works"].get<bool>(), link["reason"] == "") << link;
}

TEST(Bench, WritesAResultFileWithBothMethods) {
  TemporaryFolder folder;
  std::ofstream(folder / "w.json")
      << R"({"workloads": [{"name": "tiny", "op": "gemm_rs", "n": 64, "k": 64, "m": [32, 48], "tp": [2],
      "dtype": ["fp32"], "tier": "mine", "why": "a test", "weight": "[out,in]", "epilogue": "none"}]})";
  std::string const there = (folder / "").string();
  auto const done = flux("bench --suite mine --samples 2 --json --workloads " + there + "w.json --out " + there);
  ASSERT_EQ(done.code, 0) << done.text;
  auto const json = done.json();
  EXPECT_EQ(json["schema"], 1);
  ASSERT_EQ(json["rows"].size(), 4u);
  EXPECT_EQ(json["rows"][0]["method"], "flux");
  EXPECT_EQ(json["rows"][1]["method"], "none");
  EXPECT_EQ(json["rows"][2]["m"], 48);
  EXPECT_EQ(json["rows"][0]["link"], "host");
  EXPECT_LT(json["rows"][0]["error"].get<double>(), 1e-5);
  int files = 0;
  for (auto const& entry : std::filesystem::directory_iterator(there)) files += entry.path().extension() == ".json";
  EXPECT_EQ(files, 2);  // the workloads and the results
}

TEST(Bench, GoesOnWithItsFileAndWithNoOther) {
  TemporaryFolder folder;
  auto const suite = [&](std::string const& m) {
    std::ofstream(folder / "w.json") << R"({"workloads": [{"name": "tiny", "op": "ag_gemm", "n": 64, "k": 64, "m": [)" +
                                            m + R"(], "tp": [2],
        "dtype": ["fp32"], "tier": "mine", "why": "a test", "weight": "[out,in]", "epilogue": "none"}]})";
  };
  std::string const file = (folder / "r.json").string();
  std::string const bench = "bench --suite mine --json --workloads " + (folder / "w.json").string() + " --samples ";
  suite("32");
  ASSERT_EQ(flux(bench + "2 -o " + file).code, 0);
  suite("32, 48");  // as if the first run had been stopped behind its first problem
  auto const more = flux(bench + "2 --resume " + file);
  ASSERT_EQ(more.code, 0) << more.text;
  ASSERT_EQ(more.json()["rows"].size(), 4u);
  EXPECT_EQ(more.json()["rows"][3]["m"], 48);
  auto const done = flux(bench + "2 -o " + file);
  ASSERT_EQ(done.code, 0) << done.text;
  EXPECT_EQ(done.json(), more.json()) << "nothing was left to measure";
  auto const other = flux(bench + "3 --resume " + file);
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.text.find("cannot be gone on with: its command is"), std::string::npos) << other.text;
}

}  // namespace
}  // namespace flux::test
