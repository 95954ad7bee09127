// Machines as values: what ships, files, and what is wrong with a file.
#include "plan/machine.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "error_of.h"
#include "temporary_folder.h"

namespace flux {
namespace {

TEST(Machine, EveryNamedOneSurvivesItsFile) {
  TemporaryFolder folder;
  ASSERT_GE(named_machines().size(), 8u);
  for (Machine const& machine : named_machines()) {
    EXPECT_EQ(parse_machine(to_json(machine), "text"), machine);
    EXPECT_FALSE(machine.source.empty()) << machine.name;
    EXPECT_EQ(find_machine(machine.name), machine);
    EXPECT_EQ(find_machine(folder.file("machine.json", to_json(machine))), machine);
  }
}

TEST(Machine, AFileFromBeforeTheCacheWasNamedIsRead) {
  Machine machine = find_machine("l20");
  auto json = nlohmann::json::parse(to_json(machine));
  EXPECT_EQ(json.at("l2_bytes"), 96e6);
  json.erase("l2_bytes");
  machine.l2_bytes = 50e6;
  EXPECT_EQ(parse_machine(json.dump(), "text"), machine);
  json["l2_bytes"] = -1;
  EXPECT_HAS(invalid([&] { parse_machine(json.dump(), "text"); }), "l2_bytes");
}

TEST(Machine, AFileFromBeforeFp8WasNamedIsRead) {
  Machine machine = find_machine("a800");
  EXPECT_FALSE(machine.fp8);
  auto json = nlohmann::json::parse(to_json(machine));
  json.erase("fp8");
  machine.fp8 = true;
  EXPECT_EQ(parse_machine(json.dump(), "text"), machine);
  json["fp8"] = 1;
  EXPECT_HAS(invalid([&] { parse_machine(json.dump(), "text"); }), "fp8");
}

TEST(Machine, TheEightOfTheCommandLineAreThere) {
  for (char const* name : {"a100-pcie", "a100-sxm", "a800", "h800", "h100", "h200", "l20", "rtx4090"})
    EXPECT_NO_THROW(find_machine(name)) << name;
}

TEST(Machine, AnUnknownNameNamesTheKnown) {
  std::string const message = invalid([] { find_machine("tpu"); });
  EXPECT_HAS(message, "tpu");
  EXPECT_HAS(message, "h800");
}

TEST(Machine, ItsKeyHoldsPropertiesAndNoName) {
  Machine machine = find_machine("h200");
  std::string const before = key(machine);
  machine.name = "mine", machine.memory_gbps *= 1.01, machine.clock_mhz *= 1.02;
  EXPECT_EQ(key(machine), before) << "measured again";
  machine.processors = 78;
  EXPECT_NE(key(machine), before);
}

// Each wrong file gets a sentence that names the field.
TEST(Machine, WrongFiles) {
  auto const right = nlohmann::json::parse(to_json(find_machine("h200")));
  auto says = [](nlohmann::json const& json) { return invalid([&] { parse_machine(json.dump(), "m.json"); }); };
  auto with = [&](char const* field, nlohmann::json value) {
    auto json = right;
    json[field] = std::move(value);
    return says(json);
  };
  EXPECT_HAS(with("processors", 0), "\"processors\"");
  EXPECT_HAS(with("processors", 1.5), "whole number");
  EXPECT_HAS(with("memory_gbps", -1), "\"memory_gbps\"");
  EXPECT_HAS(with("memory_gbps", "fast"), "\"memory_gbps\"");
  EXPECT_HAS(with("memory_gbps", nullptr), "\"memory_gbps\"");
  EXPECT_HAS(with("engine", "sm70"), "sm90, sm80, host");
  EXPECT_HAS(with("schema", 1), "reads schema 2");
  EXPECT_HAS(with("mirror", 1), "true or false");
  EXPECT_HAS(with("colour", "green"), "\"colour\"");
  EXPECT_HAS(with("sustained_mhz", 9e4), "clock_mhz");
  EXPECT_HAS(with("link", 3), "the link");
  auto json = right;
  json["link"].erase("flag_us");
  EXPECT_HAS(says(json), "\"flag_us\"");
  json = right, json["link"]["push_gbps"] = 0;
  EXPECT_HAS(says(json), "\"push_gbps\"");
  EXPECT_HAS(invalid([] { parse_machine("[1, 2]", "m.json"); }), "the machine");
  EXPECT_HAS(invalid([] { parse_machine("{\"schema\": 1,", "m.json"); }), "truncated");
}

}  // namespace
}  // namespace flux
