// What the system says of a GPU's NUMA node, in a folder of the test's.
#include "world/cuda/numa.h"

#include <gtest/gtest.h>

#include <fstream>

#include "temporary_folder.h"
#include "world/ring_order.h"

namespace flux::test {
namespace {

TEST(Numa, NodeIsReadByBusId) {
  TemporaryFolder const folder;
  auto const write = [&](std::string const& device, std::string const& text) {
    std::filesystem::create_directory(folder / device);
    std::ofstream(folder / device / "numa_node") << text;
  };
  write("0000:0f:00.0", "1\n"), write("0000:10:00.0", "0\n"), write("0000:11:00.0", "-1\n"), write("0000:12:00.0", "?");
  EXPECT_EQ(numa_node("0000:0F:00.0", folder.path()), 1);  // CUDA writes capitals
  EXPECT_EQ(numa_node("0000:10:00.0", folder.path()), 0);
  EXPECT_EQ(numa_node("0000:11:00.0", folder.path()), kUnknownNode);
  EXPECT_EQ(numa_node("0000:12:00.0", folder.path()), kUnknownNode);
  EXPECT_EQ(numa_node("0000:99:00.0", folder.path()), kUnknownNode);
}

}  // namespace
}  // namespace flux::test
