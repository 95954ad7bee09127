// Two nodes with a network of their own each, where this machine lets us make some.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/flux.h"

namespace flux::test {
namespace {

class TwoNetworks : public testing::Test {
 protected:
  void SetUp() override {
    if (!shell("command -v ip >/dev/null && ip netns add " + a_ + " && ip netns add " + b_ +
               " && ip link add va netns " + a_ + " type veth peer name vb netns " + b_ + " && " + in(a_) +
               "ip addr add 10.77.0.1/24 dev va && " + in(b_) + "ip addr add 10.77.0.2/24 dev vb && " + in(a_) +
               "ip link set va up && " + in(b_) + "ip link set vb up"))
      GTEST_SKIP() << "no network namespaces can be made here";
  }
  void TearDown() override { shell("ip netns del " + a_ + "; ip netns del " + b_); }

  static bool shell(std::string const& line) { return std::system(("(" + line + ") >/dev/null 2>&1").c_str()) == 0; }
  static std::string in(std::string const& name) { return "ip netns exec " + name + " "; }

  std::string const a_ = "flux-a-" + std::to_string(getpid()), b_ = "flux-b-" + std::to_string(getpid());
};

TEST_F(TwoNetworks, CarryEveryOperator) {
  for (std::string op : {"ag_gemm", "gemm_rs", "gemm_ar"}) {
    auto const done = flux("launch -n 4 -- sh -c 'n=" + a_ + "; [ $FLUX_RANK -ge 2 ] && n=" + b_ +
                           "; exec ip netns exec $n " FLUX_CLI " run " + op +
                           " --m 300 --n 256 --k 256 --ranks 4 --nodes 2 --world processes --host --samples 0 --json'");
    ASSERT_EQ(done.code, 0) << done.text;
    EXPECT_TRUE(done.json()["right"]) << done.text;
    EXPECT_EQ(done.json()["nodes"], 2);
  }
}

}  // namespace
}  // namespace flux::test
