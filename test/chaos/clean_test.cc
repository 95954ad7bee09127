// No bug planted: the scenario list with random delays in every wait and every word that is set, under ThreadSanitizer.
#include <gtest/gtest.h>

#include "op/scenario.h"

namespace flux::test {
namespace {

TEST(Clean, ScenariosAreExactAndFreeOfRaces) {
  WorldOptions options;
  options.limit_seconds = 60;
  for (Scenario const& s : all_scenarios()) ASSERT_EQ(run_on_threads(s, options), "") << s.describe();
}

TEST(Clean, ScenariosAreExactAndFreeOfRacesOverADeclaredLink) {
  auto const list = all_scenarios();
  WorldOptions options;
  options.limit_seconds = 60;
  options.link = {2.0, 5.0};
  for (size_t i = 0; i < list.size(); i += 3) ASSERT_EQ(run_on_threads(list[i], options), "") << list[i].describe();
}

}  // namespace
}  // namespace flux::test
