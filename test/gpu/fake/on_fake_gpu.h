#pragma once
// What tests on the fake GPU begin with: programs run by processes, and an environment that ends with the test.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "error_of.h"
#include "world/program.h"

namespace flux::test {

class OnFakeGpu : public testing::Test {
 protected:
  void TearDown() override {
    setenv("LD_LIBRARY_PATH", path_.c_str(), 1);
    for (char const* variable : {"FLUX_ENGINE", "FLUX_PEERS", "FLUX_TEST_AFTER_US", "FLUX_TEST_CONSUMER",
                                 "FLUX_TEST_FAULT", "FLUX_TEST_GPUS", "FLUX_TEST_NCCL_FAILS", "FLUX_TEST_NCCL_VERSION"})
      unsetenv(variable);
  }
  /// NCCL is the library of this name in `folder`.
  void find_nccl_in(std::string const& folder) { setenv("LD_LIBRARY_PATH", (folder + ":" + path_).c_str(), 1); }

  static void expect_fine(std::string const& program) {
    for (Ending const& e : run_as_processes(program)) EXPECT_EQ(e.code, kFine) << program << ": " << e.said;
  }
  /// Every rank but `gone` (-1: every rank) ends with the one error, which says `part`, in time.
  static void expect_an_end(std::string const& program, int gone, std::string const& part, double within_seconds) {
    auto const endings = run_as_processes(program);
    for (int r = 0; r < static_cast<int>(endings.size()); ++r) {
      Ending const& e = endings[r];
      if (r == gone) continue;
      EXPECT_EQ(e.code, kRaised) << e.said;
      EXPECT_EQ(e.kind, ErrorKind::kTimeout) << e.said;
      EXPECT_HAS(e.said, part);
      EXPECT_LT(e.seconds, within_seconds) << e.said;
    }
  }

 private:
  std::string const path_ = std::getenv("LD_LIBRARY_PATH") ? std::getenv("LD_LIBRARY_PATH") : "";
};

}  // namespace flux::test
