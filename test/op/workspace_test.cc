// Operators of one world that use one set of buffers in turn, on the host.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "error_of.h"
#include "flux/op.h"

namespace flux::test {
namespace {

constexpr int64_t kM = 40, kWidth = 48;
constexpr AllGatherGemm::Shape kGather{kM, kWidth, DType::kF32};
constexpr GemmReduceScatter::Shape kSum{kM, kWidth, DType::kF32};

/// One layer of a model: y = reduce_scatter(all_gather(x) wᵀ wᵀ), x of ones.
struct Layer {
  int64_t rows;
  float want;
  std::vector<float> x, w, hidden, y;
  AllGatherGemm gather;
  GemmReduceScatter scatter;

  Layer(World& world, float weight, Workspace const* workspace, Plan const& plan = {})
      : rows(part_of_rows(kM, world.rank(), world.size()).size),
        want(kWidth * weight * kWidth * weight * static_cast<float>(world.size())),
        x(rows * kWidth, 1),
        w(kWidth * kWidth, weight),
        hidden(kM * kWidth),
        y(rows * kWidth),
        gather(world, kGather, plan, workspace),
        scatter(world, kSum, plan, workspace) {}
  static Tensor of(std::vector<float>& x) {
    return matrix(x.data(), DType::kF32, static_cast<int64_t>(x.size()) / kWidth, kWidth);
  }
  void run() {
    Linear linear;
    linear.weight = of(w), linear.out = of(hidden);
    gather.run(kM, of(x), linear);
    scatter.run(kM, of(hidden), of(w), WeightLayout::kOutIn, of(y));
  }
  void expect_right() const {
    for (float value : y) ASSERT_EQ(value, want);
  }
};

MemoryNeed need_of_layers(World& world, Plan const& plan = {}) {
  MemoryNeed need = AllGatherGemm::memory(world, kGather, plan);
  return need.cover(GemmReduceScatter::memory(world, kSum, plan));
}

TEST(Workspace, LayersUseItInTurn) {
  for (auto line : {"", "buffers=1", "route=stage transport=pull", "path=ring route=ring", "fused=no"})
    run_threads(3, {}, [&](World& world) {
      Plan const plan = parse_plan(line);
      auto workspace = std::make_unique<Workspace>(world, need_of_layers(world, plan));
      Layer one(world, 0.5f, workspace.get(), plan), two(world, 0.25f, workspace.get(), plan);
      for (int i = 0; i < 50; ++i) {
        if (i % 3 == world.rank()) std::this_thread::sleep_for(std::chrono::microseconds(200));
        one.run(), one.expect_right();
        if (i % 2 == 0) two.run(), two.expect_right();
        if (i == 25) workspace.reset();  // the layers keep what they use
      }
    });
}

TEST(Workspace, SaysWhatItTakesAndWhatDoesNotFit) {
  run_threads(2, {}, [](World& world) {
    MemoryNeed const alone = AllGatherGemm::memory(world, kGather), both = need_of_layers(world);
    EXPECT_GE(alone.buffer, kM * kWidth * 4);
    EXPECT_EQ(alone.total(), 2 * alone.buffer + alone.scratch + alone.own);
    EXPECT_GE(both.buffer, alone.buffer);
    EXPECT_GT(both.own, alone.own);
    Workspace const workspace(world, both);
    auto expect = [](std::string const& part, auto&& act) {
      std::string const said = error_of(ErrorKind::kInvalid, act);
      EXPECT_NE(said.find(part), std::string::npos) << said;
    };
    expect("covers() all", [&] { AllGatherGemm(world, {100 * kM, kWidth, DType::kF32}, {}, &workspace); });
    expect("buffers=1", [&] { Layer(world, 1, &workspace, parse_plan("buffers=1")); });
    expect("route=sum", [&] { GemmReduceScatter(world, kSum, parse_plan("route=sum"), &workspace); });
    Layer layer(world, 0.5f, &workspace);
    expect("lane=1", [&] { Layer(world, 1, &workspace, parse_plan("lane=1")); });
    expect("1 to 64", [&] { Workspace(world, {0, 8, 0, 0}); });
    layer.run(), layer.expect_right();
  });
}

TEST(Workspace, BelongsToOneWorld) {
  run_threads(1, {}, [](World& first) {
    Workspace const workspace(first, need_of_layers(first));
    run_threads(1, {}, [&](World& second) {
      std::string const said = error_of(ErrorKind::kInvalid, [&] { Layer(second, 1, &workspace); });
      EXPECT_NE(said.find("another world"), std::string::npos) << said;
    });
  });
}

TEST(Workspace, TooMuchIsSaidBeforeAnyIsTaken) {
  run_threads(2, {}, [](World& world) {
    std::string const said = error_of(ErrorKind::kDevice, [&] { Workspace(world, {2, int64_t{1} << 50, 0, 0}); });
    EXPECT_NE(said.find("a workspace needs 2251799813685248 bytes"), std::string::npos) << said;
  });
}

}  // namespace
}  // namespace flux::test
