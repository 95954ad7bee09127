#include "io/checkpoint.h"

#include <gtest/gtest.h>

#include <string>

#include "error_of.h"
#include "io/safetensors.h"
#include "temporary_folder.h"

namespace flux {
namespace {

void write_one(std::filesystem::path const& path, std::string const& name, float value) {
  write_safetensors(path, {{name, matrix(&value, DType::kF32, 1, 1)}});
}

float value_of(Checkpoint const& checkpoint, std::string_view name) {
  return *static_cast<float const*>(checkpoint.tensor(name).data);
}

TEST(Checkpoint, ReadsOneFile) {
  TemporaryFolder folder;
  write_one(folder / "any.safetensors", "a", 3);
  Checkpoint const checkpoint(folder / "any.safetensors");
  EXPECT_TRUE(checkpoint.contains("a"));
  EXPECT_FALSE(checkpoint.contains("b"));
  EXPECT_EQ(value_of(checkpoint, "a"), 3);
  EXPECT_EQ(checkpoint.folder(), folder.path());
}

TEST(Checkpoint, ReadsAnIndexInPreferenceToFiles) {
  TemporaryFolder folder;
  write_one(folder / "model-1.safetensors", "a", 1);
  write_one(folder / "model-2.safetensors", "b", 2);
  write_one(folder / "other.safetensors", "c", 3);
  auto const index =
      folder.file("model.safetensors.index.json",
                  R"({"metadata":{},"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})");
  for (auto const& path : {index, folder.path()}) {
    Checkpoint const checkpoint(path);
    EXPECT_EQ(value_of(checkpoint, "a"), 1);
    EXPECT_EQ(value_of(checkpoint, "b"), 2);
    EXPECT_FALSE(checkpoint.contains("c"));
    EXPECT_EQ(checkpoint.folder(), folder.path());
  }
}

TEST(Checkpoint, ReadsAllFilesOfAFolderWithoutIndex) {
  TemporaryFolder folder;
  write_one(folder / "x.safetensors", "a", 1);
  write_one(folder / "y.safetensors", "b", 2);
  EXPECT_EQ(Checkpoint(folder.path()).tensors().size(), 2u);
  write_one(folder / "z.safetensors", "b", 2);
  EXPECT_HAS(invalid([&] { Checkpoint{folder.path()}; }), "another file");
  write_one(folder / "model.safetensors", "d", 4);
  EXPECT_EQ(Checkpoint(folder.path()).tensors().size(), 1u);
}

TEST(Checkpoint, RefusesWhatIsNone) {
  TemporaryFolder folder;
  EXPECT_HAS(invalid([&] { Checkpoint{folder.path()}; }), "no *.safetensors");
  EXPECT_HAS(invalid([&] { Checkpoint(folder / "absent.safetensors"); }), "No such file");
  EXPECT_HAS(invalid([&] { Checkpoint(folder.file("pytorch_model.bin", "PK\3\4 more than eight")); }), "header of");
}

TEST(Checkpoint, RefusesLyingIndexes) {
  TemporaryFolder folder;
  write_one(folder / "model-1.safetensors", "a", 1);
  auto index = [&](std::string const& map) {
    return invalid([&] { Checkpoint(folder.file("model.safetensors.index.json", map)); });
  };
  EXPECT_HAS(index(R"({"weight_map":{"a":"model-1.safetensors","b":"model-1.safetensors"}})"), "promises tensor \"b\"");
  EXPECT_HAS(index(R"({"weight_map":{"a":"../x.safetensors"}})"), "beside it");
  EXPECT_HAS(index(R"({"weight_map":{"a":"config.json"}})"), "beside it");
  EXPECT_HAS(index(R"({"weight_map":{"a":"model-2.safetensors"}})"), "No such file");
  EXPECT_HAS(index(R"({"weight_map":{"a":7}})"), "no file name");
  EXPECT_HAS(index(R"({"weight_map":[]})"), "weight_map");
  EXPECT_HAS(index(R"([])"), "weight_map");
  EXPECT_HAS(index(R"({"weight_map":)"), "truncated");
}

TEST(Checkpoint, NamesTensorsLikeTheMissingOne) {
  TemporaryFolder folder;
  float one = 1;
  Tensor const tensor = matrix(&one, DType::kF32, 1, 1);
  write_safetensors(folder / "x.safetensors",
                    {{"embed", tensor}, {"layer.0.up", tensor}, {"layer.0.down", tensor}, {"layer.1.up", tensor}});
  std::string const message = invalid([&] { Checkpoint(folder / "x.safetensors").at("layer.0.gate"); });
  EXPECT_HAS(message, "no tensor \"layer.0.gate\"");
  EXPECT_HAS(message, "\"layer.0.down\", \"layer.0.up\", \"layer.1.up\"");
}

}  // namespace
}  // namespace flux
