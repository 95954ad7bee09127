#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "error_of.h"
#include "io/atomic_file.h"
#include "io/json_file.h"
#include "io/mapped_file.h"
#include "io/owned_tensor.h"
#include "io/quote.h"
#include "io/shape.h"
#include "temporary_folder.h"

namespace flux {
namespace {

std::string text_of(MappedFile const& file) {
  return {reinterpret_cast<char const*>(file.bytes().data()), file.bytes().size()};
}

TEST(MappedFile, ShowsTheBytesAndMoves) {
  TemporaryFolder folder;
  MappedFile file(folder.file("a", "hello"));
  EXPECT_EQ(text_of(file), "hello");
  MappedFile moved = std::move(file);
  EXPECT_EQ(text_of(moved), "hello");
  moved = MappedFile(folder.file("b", "other"));
  EXPECT_EQ(text_of(moved), "other");
  EXPECT_EQ(text_of(MappedFile(folder.file("empty", ""))), "");
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  TemporaryFolder folder;
  EXPECT_HAS(invalid([&] { MappedFile(folder / "absent"); }), "No such file");
  EXPECT_HAS(invalid([&] { MappedFile(folder.path()); }), "no regular file");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_HAS(invalid([&] { MappedFile(folder / "pipe"); }), "no regular file");
}

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  TemporaryFolder folder;
  {
    AtomicFile file(folder / "out");
    file.write("half");
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  }
  EXPECT_EQ(folder.count(), 0u);
  write_file(folder / "out", "whole");
  EXPECT_EQ(bytes_of(folder / "out"), "whole");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(AtomicFile, KeepsTheOldFileOnFailure) {
  TemporaryFolder folder;
  auto const path = folder.file("out", "old");
  chmod(path.c_str(), 0640);
  try {
    AtomicFile file(path);
    file.write("new");
    throw std::runtime_error("disaster");
  } catch (std::runtime_error const&) {
  }
  EXPECT_EQ(bytes_of(path), "old");
  EXPECT_EQ(folder.count(), 1u);
  write_file(path, "new");
  EXPECT_EQ(bytes_of(path), "new");
  struct stat facts {};
  ASSERT_EQ(stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0640u);
}

TEST(AtomicFile, FollowsLinks) {
  TemporaryFolder folder;
  std::filesystem::create_symlink("target", folder / "link");
  write_file(folder / "link", "through");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(bytes_of(folder / "target"), "through");
  write_file(folder / "link", "again");
  EXPECT_EQ(bytes_of(folder / "target"), "again");
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_HAS(invalid([&] { AtomicFile(folder / "loop"); }), "cannot write");
}

TEST(AtomicFile, RefusesWhatCannotBeWritten) {
  TemporaryFolder folder;
  EXPECT_HAS(invalid([&] { AtomicFile(folder / "absent" / "out"); }), "cannot write");
  EXPECT_HAS(invalid([&] { AtomicFile{folder.path()}; }), "directory");
  EXPECT_HAS(invalid([&] { AtomicFile("/dev/null"); }), "not a regular file");
  EXPECT_HAS(invalid([&] { AtomicFile(""); }), "not a regular file");
  EXPECT_HAS(invalid([&] { AtomicFile(folder / std::string(300, 'x')); }), "cannot write");
  EXPECT_HAS(invalid([&] { AtomicFile(folder.file("plain", "") / "out"); }), "not a folder");
}

TEST(AtomicFile, SaysWhenTheDiskIsFull) {
  // A size limit of the process stands for a full disk.
  TemporaryFolder folder;
  auto fill = [&] {
    struct rlimit const limit{1000, 1000};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file(folder / "out", std::string(5000, 'x'));
    } catch (Error const& error) {
      fprintf(stderr, "%s: %s", name(error.kind()).data(), error.what());
    }
    _exit(static_cast<int>(folder.count()));
  };
  EXPECT_EXIT(fill(), testing::ExitedWithCode(0), "device: cannot write .*File too large");
}

TEST(OwnedTensor, IsAlignedZeroAndStays) {
  OwnedTensor tensor(DType::kF32, 3, 5);
  void* const data = tensor.view().data;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(static_cast<float*>(data)[i], 0.0f);
  OwnedTensor const moved = std::move(tensor);
  EXPECT_EQ(moved.view().data, data);
  EXPECT_TRUE(OwnedTensor(DType::kF16, 0, 4).view());
  EXPECT_HAS(invalid([] { OwnedTensor(DType::kF64, int64_t{1} << 40, int64_t{1} << 40); }), "does not fit");
  EXPECT_HAS(invalid([] { OwnedTensor(DType::kF64, -1, 4); }), "does not fit");
}

TEST(OwnedTensor, CopiesStridedAndUnaligned) {
  alignas(8) std::byte memory[64] = {};
  float const values[] = {1, 2, 3, 4, 5, 6, 7};
  std::memcpy(memory + 1, values, sizeof values);
  Tensor const source{memory + 1, DType::kF32, 2, 3, 4};
  EXPECT_FALSE(aligned(source));
  OwnedTensor const copy = copy_of(source);
  EXPECT_TRUE(aligned(copy));
  float const expected[] = {1, 2, 3, 5, 6, 7};
  EXPECT_EQ(std::memcmp(copy.view().data, expected, sizeof expected), 0);
}

TEST(Shape, MultipliesWithoutOverflow) {
  EXPECT_EQ(checked_product({}), 1);
  EXPECT_EQ(checked_product({3, 4, 5}), 60);
  EXPECT_EQ(checked_product({3, 0, 5}), 0);
  EXPECT_EQ(checked_product({INT64_MAX, 2}), std::nullopt);
  EXPECT_EQ(checked_product({0, INT64_MAX, 2}), std::nullopt);
  EXPECT_EQ(checked_product({3, -1}), std::nullopt);
  EXPECT_EQ(matrix_rows({2, 3, 4}), 6);
  EXPECT_EQ(matrix_columns({2, 3, 4}), 4);
  EXPECT_EQ(matrix_rows({7}), 1);
  EXPECT_EQ(shape_text({2, 3}), "[2, 3]");
}

TEST(Quote, KeepsMessagesReadable) {
  EXPECT_EQ(quote("plain"), "\"plain\"");
  EXPECT_EQ(quote("fl\u00fcssig \u2192"), "\"fl\u00fcssig \u2192\"");
  EXPECT_EQ(quote("a\nb\033[1m"), "\"a\\x0ab\\x1b[1m\"");
  EXPECT_EQ(quote("\xff\xc0\x80\xed\xa0\x80"), "\"\\xff\\xc0\\x80\\xed\\xa0\\x80\"");
  EXPECT_EQ(quote("\xe2\x86"), "\"\\xe2\\x86\"");
  EXPECT_EQ(quote("\xc2\x9b"), "\"\\xc2\\x9b\"");
  EXPECT_LT(quote(std::string(10000, 'x')).size(), 200u);
}

TEST(Json, SaysWhatIsWrong) {
  EXPECT_EQ(parse_json("{\"a\": [1, 2]}", "f")["a"][1], 2);
  EXPECT_HAS(invalid([] { parse_json("{\"a\": [1, 2", "f"); }), "truncated");
  EXPECT_HAS(invalid([] { parse_json("", "f"); }), "truncated");
  EXPECT_HAS(invalid([] { parse_json("{\"a\": NaN}", "f"); }), "no JSON from byte 7");
  EXPECT_HAS(invalid([] { parse_json("1e999", "f"); }), "too large");
  EXPECT_HAS(invalid([] { parse_json(std::string(100000, '['), "f"); }), "nested");
  EXPECT_HAS(invalid([] { parse_json(std::string(17, '[') + std::string(17, ']'), "f"); }), "nested");
  EXPECT_EQ(parse_json(std::string(16, '[') + std::string(16, ']'), "f").size(), 1u);
  EXPECT_EQ(parse_json(R"(["[[[[[[[[[[[[[[[[[\\", "\"{{{{{{{{{{{{{{{{{{"])", "f").size(), 2u)
      << "brackets of text do not count";
}

}  // namespace
}  // namespace flux
