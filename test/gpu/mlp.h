#pragma once
// Two operators on one rank of a GPU, for the tests of calls and buffers.
#include <memory>

#include "flux/op.h"
#include "gpu/world.h"

namespace flux::test {

inline WorldOptions options(double limit_seconds = 20) {
  WorldOptions o;
  o.limit_seconds = limit_seconds;
  return o;
}

/// One rank's operands of both operators, and results to compare by bytes.
struct Layer {
  static constexpr int64_t kM = 200, kN = 128, kK = 192;
  int rank, ranks;
  DeviceMatrix x, up, hidden, down, y;

  Layer(World& world)
      : rank(world.rank()),
        ranks(world.size()),
        x(DType::kBF16, part_of_rows(kM, rank, ranks).size, kK),
        up(DType::kBF16, kN, kK),
        hidden(DType::kBF16, kM, kN),
        down(DType::kBF16, kK, kN),
        y(DType::kBF16, part_of_rows(kM, rank, ranks).size, kK) {
    std::mt19937 random(rank + 1);
    x.fill(random, false), up.fill(random, false), down.fill(random, false);
    poison();
    must(cudaDeviceSynchronize());
  }
  void poison() { hidden.poison(), y.poison(); }
  std::vector<float> results() {
    hidden.download(), y.download();
    std::vector<float> all = hidden.host;
    all.insert(all.end(), y.host.begin(), y.host.end());
    return all;
  }
};

/// y = reduce_scatter(all_gather(x) upᵀ downᵀ) on one lane.
struct Mlp {
  Layer& layer;
  AllGatherGemm gather;
  GemmReduceScatter scatter;

  Mlp(World& world, Layer& layer, std::string_view line = "", Workspace const* workspace = nullptr)
      : layer(layer),
        gather(world, gather_shape(), parse_plan(line), workspace),
        scatter(world, sum_shape(world), parse_plan(line), workspace) {}

  static AllGatherGemm::Shape gather_shape() { return {Layer::kM, Layer::kK, DType::kBF16}; }
  static GemmReduceScatter::Shape sum_shape(World& world) {
    return {Layer::kM, Layer::kK, DType::kBF16, Layer::kN * world.size()};
  }
  static MemoryNeed need(World& world, std::string_view line) {
    MemoryNeed both = AllGatherGemm::memory(world, gather_shape(), parse_plan(line));
    return both.cover(GemmReduceScatter::memory(world, sum_shape(world), parse_plan(line)));
  }

  void enqueue(Stream stream, int64_t m = Layer::kM) {
    Linear linear;
    linear.weight = layer.up.tensor(), linear.out = rows(layer.hidden, m);
    int64_t const own = part_of_rows(m, layer.rank, layer.ranks).size;
    gather.run(m, rows(layer.x, own), linear, stream);
    scatter.run(m, rows(layer.hidden, m), layer.down.tensor(), WeightLayout::kOutIn, rows(layer.y, own), {}, stream);
  }
  static Tensor rows(DeviceMatrix const& matrix, int64_t count) {
    Tensor t = matrix.tensor();
    t.rows = count;
    return t;
  }
};

}  // namespace flux::test
