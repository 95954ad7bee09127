// The tests, or (`--program NAME`) one rank of one of their programs.
#include <gtest/gtest.h>

#include <string_view>

#include "world/program.h"

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--program") return flux::test::run_as_rank(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
