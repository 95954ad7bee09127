#include "io/file_lock.h"

#include <gtest/gtest.h>

#include "error_of.h"
#include "temporary_folder.h"

namespace flux {
namespace {

TEST(FileLock, AHolderIsWaitedForWithinABound) {
  TemporaryFolder folder;
  auto held = std::make_unique<FileLock>(folder / "file");
  EXPECT_HAS(error_of(ErrorKind::kTimeout, [&] { FileLock(folder / "file", 0.05); }), "locked by another");
  held.reset();
  EXPECT_NO_THROW(FileLock(folder / "file", 0.05));
  EXPECT_HAS(invalid([&] { FileLock(folder / "nowhere" / "file"); }), "nowhere");
}

}  // namespace
}  // namespace flux
