// The scenario list with ranks as threads.
#include <gtest/gtest.h>

#include "op/scenario.h"

namespace flux::test {
namespace {

WorldOptions options() {
  WorldOptions o;
  o.limit_seconds = 20;
  return o;
}

TEST(Threads, EveryScenarioIsExact) {
  for (Scenario const& s : all_scenarios()) EXPECT_EQ(run_on_threads(s, options()), "") << s.describe();
}

TEST(Threads, EveryScenarioIsExactOverADeclaredLink) {
  WorldOptions o = options();
  o.link = {2.0, 5.0};
  for (Scenario const& s : all_scenarios()) EXPECT_EQ(run_on_threads(s, o), "") << s.describe();
}

}  // namespace
}  // namespace flux::test
