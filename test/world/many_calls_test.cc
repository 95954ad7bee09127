// A hundred thousand calls that reuse the same few buffers, of any number of rows, with ranks that come late at random:
// twice the same bytes.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <thread>

#include "flux/op.h"

namespace flux::test {
namespace {

constexpr int kRanks = 3, kCalls = 100'000;
constexpr int64_t kMost = 6, kWidth = 8;

uint64_t hash(Tensor const& t, uint64_t seed) {
  for (int64_t i = 0; i < t.rows; ++i)
    for (int64_t j = 0; j < t.columns; ++j) {
      uint32_t bits;
      std::memcpy(&bits, static_cast<float*>(t.row(i)) + j, sizeof bits);
      seed = (seed ^ bits) * 1099511628211ull;
    }
  return seed;
}

// Each rank's hash of everything it got. `delays` seeds when which rank is late.
std::array<uint64_t, kRanks> run_many(int delays, Plan const& plan) {
  std::array<uint64_t, kRanks> hashes;
  WorldOptions options;
  options.limit_seconds = 60;
  run_threads(kRanks, options, [&](World& world) {
    int const rank = world.rank();
    AllGatherGemm gather(world, {kMost, kWidth, DType::kF32}, plan);
    GemmReduceScatter scatter(world, {kMost, kWidth, DType::kF32}, plan);
    GemmAllReduce reduce(world, {kMost, kWidth, DType::kF32}, plan);
    std::mt19937 sizes(1), lateness(delays * 100 + rank), values(rank);
    std::uniform_real_distribution<float> real(-1, 1);
    std::vector<float> pool(4096), out(kMost * kWidth);
    for (float& value : pool) value = real(values);
    uint64_t seen = 14695981039346656037ull;
    for (int call = 0; call < kCalls; ++call) {
      int64_t const m = sizes() % (kMost + 1);
      int64_t const own = part_of_rows(m, rank, kRanks).size;
      float* const x = &pool[call * 11 % 4000];  // not what the call before multiplied
      float* const w = &pool[call * 7 % 4000];
      Tensor const weight = matrix(w, DType::kF32, kWidth, kWidth);
      Tensor const all = matrix(out.data(), DType::kF32, m, kWidth),
                   part = matrix(out.data(), DType::kF32, own, kWidth);
      if (lateness() % 512 == 0) std::this_thread::sleep_for(std::chrono::microseconds(lateness() % 200));
      if (call % 3 == 0) {
        Linear linear;
        linear.weight = weight, linear.out = all;
        gather.run(m, matrix(x, DType::kF32, own, kWidth), linear);
      } else if (call % 3 == 1) {
        scatter.run(m, matrix(x, DType::kF32, m, kWidth), weight, WeightLayout::kOutIn, part);
      } else {
        reduce.run(m, matrix(x, DType::kF32, m, kWidth), weight, WeightLayout::kInOut, all);
      }
      seen = hash(call % 3 == 1 ? part : all, seen);
    }
    hashes[rank] = seen;
  });
  return hashes;
}

TEST(ManyCalls, GiveTheSameBytesRunToRun) {
  Plan const plan = parse_plan("tile=2x8 comm_rows=1");
  EXPECT_EQ(run_many(1, plan), run_many(2, plan));
}

}  // namespace
}  // namespace flux::test
