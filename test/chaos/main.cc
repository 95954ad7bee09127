// The tests, or (`--workload NAME`) what one of them starts with a bug planted.
#include <gtest/gtest.h>

#include <string_view>

#include "chaos/workload.h"

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--workload") return flux::test::run_workload(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
