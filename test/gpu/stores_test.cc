// The three store instructions: every row of the table, results that stay and results that leave, byte for byte; what
// is announced when the kernel ends, and that nothing beside the result was written.
#include <memory>

#include "flux/error.h"
#include "gpu/device.h"
#include "kernel/gemm.h"

namespace flux::test {
namespace {

constexpr Word kGoal = 0x5eed;
constexpr StoreKind kStores[] = {StoreKind::kTensor, StoreKind::kBulk, StoreKind::kVector};

/// One product of small whole numbers, and what it must be.
class Stores : public OnHopper {
 protected:
  int64_t m = 0, n = 0, k = 0;
  std::unique_ptr<DeviceMatrix> x, w;
  Reference product;

  void prepare(int64_t rows, int64_t columns, int64_t depth) {
    m = rows, n = columns, k = depth;
    std::mt19937 random(static_cast<unsigned>(m + n));
    x = std::make_unique<DeviceMatrix>(DType::kBF16, m, k), w = std::make_unique<DeviceMatrix>(DType::kBF16, n, k);
    x->fill(random, true), w->fill(random, true);
    product = x->values() * w->values().transpose();
  }

  GemmLaunch launch(int row, StoreKind store, Order order, Shards const& shards, int rank) const {
    TileRow const tile = gpu_tile(row);
    GemmLaunch l;
    l.tile = tile, l.store = store;
    l.a.base[0] = x->bytes.as(), l.a_stride = k, l.weight = w->tensor(), l.c_stride = n;
    l.order = arrange(order, Tiling::kAcross, shards, tile.tile_m, tile.tiles_n(n), 3, rank);
    l.gate = Open{0, k};
    l.processors = 6;  // several tiles a block
    return l;
  }
  static std::string describe(int row, StoreKind store, int64_t m, int ranks) {
    return "row " + std::to_string(row) + ", store " + std::to_string(static_cast<int>(store)) +
           ", m=" + std::to_string(m) + ", " + std::to_string(ranks) + " ranks";
  }
};

TEST_F(Stores, ResultsThatStay) {
  for (auto [rows, columns, depth] :
       {std::array<int64_t, 3>{1, 8, 8}, {65, 264, 200}, {300, 520, 72}, {777, 1032, 136}}) {
    prepare(rows, columns, depth);
    for (int row = 0; row < kGpuTiles; ++row)
      for (StoreKind store : kStores) {
        DeviceMatrix y(DType::kBF16, m, n);
        y.poison();
        GemmLaunch l = launch(row, store, Order::kNaive, {m, 1, 1}, 0);
        l.c.base[0] = y.bytes.as(), l.route = Keep{0, m};
        enqueue_gemm(l, nullptr);
        must(cudaDeviceSynchronize());
        y.download();
        EXPECT_EQ(relative_error(y.values(), product), 0) << describe(row, store, m, 1);
      }
  }
}

TEST_F(Stores, ResultsThatLeave) {
  struct Size {
    int64_t m, n, k;
    int ranks;
  };
  for (Size const& s : {Size{7, 96, 40, 8}, {129, 264, 200, 2}, {300, 520, 72, 3}, {1000, 344, 64, 5}}) {
    prepare(s.m, s.n, s.k);
    Shards const shards{m, s.ranks, 1};
    int const rank = s.ranks - 1;  // whose kernel this is
    int64_t const slot_rows = shards.largest();
    for (int row = 0; row < kGpuTiles; ++row)
      for (StoreKind store : kStores) {
        std::string const what = describe(row, store, m, s.ranks);
        BandWords const bands{shards, gpu_tile(row).tile_m, Tiling::kAcross};
        int64_t const count = bands.size();
        DeviceBytes counts(count * sizeof(Word));
        std::vector<DeviceMatrix> slots;
        std::vector<DeviceBytes> words;
        GemmLaunch l = launch(row, store, Order::kRotated, shards, rank);
        Announcer out{bands, gpu_tile(row).announcements(n), counts.as<Word>(), {}, kGoal};
        for (int p = 0; p < s.ranks; ++p) {
          slots.emplace_back(DType::kBF16, s.ranks * slot_rows, n).poison();
          l.c.base[p] = slots.back().bytes.as();
          out.words.base[p] = words.emplace_back(count * sizeof(Word)).as<Word>();
        }
        l.route = Push{rank, slot_rows, out};
        enqueue_gemm(l, nullptr);
        must(cudaDeviceSynchronize());
        for (int p = 0; p < s.ranks; ++p) {
          slots[p].download();
          Reference const all = slots[p].values();
          EXPECT_EQ(relative_error(all.middleRows(rank * slot_rows, shards.size(p)),
                                   product.middleRows(shards.begin(p), shards.size(p))),
                    0)
              << what << ", owner " << p;
          EXPECT_TRUE(all.topRows(rank * slot_rows).array().isNaN().all()) << what << ": another's slot was written";
          EXPECT_TRUE(all.bottomRows(slot_rows - shards.size(p)).array().isNaN().all()) << what << ": behind the shard";
          std::vector<Word> set(count);
          must(cudaMemcpy(set.data(), words[p].as<void>(), words[p].bytes(), cudaMemcpyDeviceToHost));
          for (int band = 0; band < bands.count(p); ++band)
            EXPECT_EQ(set[bands.index(rank, band)], kGoal) << what << ", owner " << p << ", band " << band;
        }
        std::vector<Word> left(count);
        must(cudaMemcpy(left.data(), counts.as<void>(), counts.bytes(), cudaMemcpyDeviceToHost));
        EXPECT_EQ(left, std::vector<Word>(count)) << what << ": counts are zero between calls";
      }
  }
}

TEST_F(Stores, VectorsDoNotAdd) {
  prepare(64, 64, 64);
  GemmLaunch l = launch(0, StoreKind::kVector, Order::kNaive, {m, 1, 1}, 0);
  l.route = Sum{0, {}};
  try {
    enqueue_gemm(l, nullptr);
    FAIL() << "no error";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("store=bulk"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace flux::test
