// Several ranks on one GPU, in one process: the real fused kernels, each rank's blocks beside the others', against a
// plain product in fp64. Copies have streams of their own and are held up at random.
#include <memory>

#include "bench/tolerance.h"
#include "gpu/device.h"
#include "kernel/gemm.h"
#include "kernel/residency.h"
#include "kernel/slot_sum.h"

namespace flux::test {
namespace {

constexpr Word kGoal = 0x5eed;
constexpr int kSumBlocks = 2;

/// A rank's memory and streams.
struct Rank {
  DeviceMatrix x, w, y;
  DeviceBytes data;  // gathered rows, or slots
  DeviceBytes words, counts;
  DeviceBytes abort, record, goal;
  OwnStream compute, copies;

  Rank(DeviceMatrix x, DeviceMatrix w, DeviceMatrix y, int64_t data_bytes, int64_t words)
      : x(std::move(x)),
        w(std::move(w)),
        y(std::move(y)),
        data(data_bytes),
        words(words * sizeof(Word)),
        counts(words * sizeof(Word)),
        abort(sizeof(Word)),
        record(sizeof(Record)),
        goal(sizeof(Word)) {
    must(cudaMemcpy(goal.as<void>(), &kGoal, sizeof kGoal, cudaMemcpyHostToDevice));
    must(cudaMemset(data.as<void>(), 0xff, data.bytes()));
    arrive();
  }
};

class SharedGpu : public OnHopper {
 protected:
  std::vector<std::unique_ptr<Rank>> ranks;

  int size() const { return static_cast<int>(ranks.size()); }
  /// Processors of a rank: some stay free for copies that run as kernels, and for the slot sums.
  int blocks() const { return 120 / size() - kSumBlocks; }

  Watch watch(int rank, double limit_seconds = 20) {
    Watch w;
    for (int i = 0; i < size(); ++i) w.abort.base[i] = ranks[i]->abort.as<Word>();
    w.record = ranks[rank]->record.as<Record>();
    w.limit_ns = static_cast<int64_t>(limit_seconds * 1e9);
    w.rank = rank, w.ranks = size();
    return w;
  }
  Symmetric<Word> words() {
    Symmetric<Word> all;
    for (int i = 0; i < size(); ++i) all.base[i] = ranks[i]->words.as<Word>();
    return all;
  }
  GemmLaunch launch_of(int rank, int row) {
    Rank& me = *ranks[rank];
    GemmLaunch l;
    l.tile = gpu_tile(row), l.weight = me.w.tensor(), l.processors = blocks();
    return l;
  }
};

TEST_F(SharedGpu, AllBlocksAreResidentTogether) {
  for (int count : {2, 3, 8}) {
    std::vector<std::unique_ptr<OwnStream>> streams;
    std::vector<CUstream_st*> raw;
    for (int i = 0; i < count; ++i) raw.push_back(*streams.emplace_back(std::make_unique<OwnStream>()));
    EXPECT_TRUE(resident_together(raw, 120 / count, 5)) << count << " ranks";
  }
  std::vector<std::unique_ptr<OwnStream>> streams;
  std::vector<CUstream_st*> raw;
  for (int i = 0; i < 2; ++i) raw.push_back(*streams.emplace_back(std::make_unique<OwnStream>()));
  EXPECT_FALSE(resident_together(raw, 200, 0.2)) << "more blocks than any GPU of this kind holds";
}

constexpr int kSm80 = sm90::kConfigs;  // the first row of the other engine, in gpu_tile()

struct Shape {
  int ranks, row;
  int64_t m, n, k;  // of a rank: n weights of k
  bool whole;
  DType dtype = DType::kBF16;
};
std::string describe(Shape const& s) {
  return std::to_string(s.ranks) + " ranks, row " + std::to_string(s.row) + ", " + std::to_string(s.m) + "x" +
         std::to_string(s.n) + "x" + std::to_string(s.k) + (s.whole ? " whole numbers" : " random") + " " +
         std::string(name(s.dtype));
}

class AllGather : public SharedGpu {
 protected:
  Reference gathered;

  void prepare(Shape const& s, int64_t comm_rows, int slices) {
    ranks.clear();
    std::mt19937 random(static_cast<unsigned>(s.m + s.n));
    layout = {{s.m, s.ranks, 1}, {s.k, slices, 64}, comm_rows > 0 ? comm_rows : Shards{s.m, s.ranks, 1}.largest()};
    gathered.resize(s.m, s.k);
    for (int r = 0; r < s.ranks; ++r) {
      DeviceMatrix x(s.dtype, layout.shards.size(r), s.k), w(s.dtype, s.n, s.k), y(s.dtype, s.m, s.n);
      x.fill(random, s.whole), w.fill(random, s.whole), y.poison();
      gathered.middleRows(layout.shards.begin(r), x.rows) = x.values();
      ranks.push_back(std::make_unique<Rank>(std::move(x), std::move(w), std::move(y), s.m * s.k * 2, layout.size()));
    }
    must(cudaDeviceSynchronize());
  }

  /// Rank r's shard to everybody's gather buffer, tile by tile and slice by slice, each followed by its word.
  void push(int r, Shape const& s) {
    Rank& me = *ranks[r];
    Shards const shards = layout.shards;
    for (int i = 0; i < s.ranks; ++i) {
      Rank& to = *ranks[(r + i) % s.ranks];
      for (int64_t t = 0; t * layout.comm_rows < shards.size(r); ++t)
        for (int slice = 0; slice < layout.slices.ranks; ++slice) {
          int64_t const row = t * layout.comm_rows, rows = std::min(layout.comm_rows, shards.size(r) - row);
          int64_t const k = layout.slices.begin(slice), width = layout.slices.size(slice);
          if (width > 0)
            must(cudaMemcpy2DAsync(to.data.as<char>() + ((shards.begin(r) + row) * s.k + k) * 2, s.k * 2,
                                   me.x.bytes.as<char>() + (row * s.k + k) * 2, s.k * 2, width * 2, rows,
                                   cudaMemcpyDeviceToDevice, me.copies));
          if (i > 0)
            must(cudaMemcpyAsync(to.words.as<Word>() + layout.index(r, t, slice), me.goal.as<Word>(), sizeof(Word),
                                 cudaMemcpyDeviceToDevice, me.copies));
        }
    }
  }

  void multiply(int r, Shape const& s, double limit_seconds = 20) {
    TileRow const tile = gpu_tile(s.row);
    Rank& me = *ranks[r];
    GemmLaunch l = launch_of(r, s.row);
    l.a.base[r] = me.data.as(), l.a_stride = s.k;
    l.c.base[r] = me.y.bytes.as(), l.c_stride = s.n;
    l.order = arrange(Order::kArrival, Tiling::kAcross, layout.shards, tile.tile_m, tile.tiles_n(s.n), 4, r);
    l.gate = Arrival{r, layout, me.words.as<Word>(), kGoal, watch(r, limit_seconds)};
    l.route = Keep{r, s.m};
    enqueue_gemm(l, me.compute);
  }

  double error(int r) {
    ranks[r]->y.download();
    return relative_error(ranks[r]->y.values(), gathered * ranks[r]->w.values().transpose());
  }

  ArrivalWords layout;
};

TEST_F(AllGather, ByCopies) {
  for (Shape const& s :
       {Shape{2, 0, 512, 512, 192, true}, Shape{3, 8, 1000, 344, 328, true}, Shape{8, 5, 2048, 256, 256, true},
        Shape{8, 3, 63, 200, 1000, true}, Shape{8, 12, 7, 96, 640, true}, Shape{4, 7, 777, 312, 136, true, DType::kF16},
        Shape{8, 9, 1024, 528, 1024, false}, Shape{2, 11, 700, 264, 512, false},
        Shape{2, kSm80 + 1, 512, 512, 192, true}, Shape{3, kSm80 + 2, 1000, 344, 328, true},
        Shape{8, kSm80 + 7, 63, 200, 1000, true}, Shape{4, kSm80 + 4, 777, 312, 136, true, DType::kF16},
        Shape{8, kSm80 + 2, 1024, 528, 1024, false}})
    for (int slices : {1, 3}) {
      prepare(s, s.m > 512 ? 100 : 0, slices);
      for (int r = 0; r < s.ranks; ++r) {  // own rows lie there before the kernel starts
        Rank& me = *ranks[r];
        must(cudaMemcpy(me.data.as<char>() + layout.shards.begin(r) * s.k * 2, me.x.bytes.as<void>(),
                        me.x.bytes.bytes(), cudaMemcpyDeviceToDevice));
      }
      must(cudaDeviceSynchronize());
      for (int r = 0; r < s.ranks; ++r) multiply(r, s);
      for (int r = s.ranks; r-- > 0;) push(r, s);
      must(cudaDeviceSynchronize());
      for (int r = 0; r < s.ranks; ++r)
        if (s.whole)
          EXPECT_EQ(error(r), 0) << describe(s) << ", rank " << r << ", slices " << slices;
        else
          EXPECT_LE(error(r), bench::tolerance(s.dtype)) << describe(s) << ", rank " << r << ", slices " << slices;
    }
}

TEST_F(AllGather, RemoteRows) {
  for (Shape const& s :
       {Shape{4, sm90::kConfigs - 2, 64, 512, 512, true}, Shape{8, sm90::kConfigs - 1, 50, 256, 1024, true},
        Shape{8, kSm80 + 7, 50, 256, 1024, true}, Shape{3, kSm80 + 2, 200, 512, 512, true}})
    for (StoreKind store : {StoreKind::kTensor, StoreKind::kBulk, StoreKind::kVector}) {
      prepare(s, 0, 1);
      TileRow const tile = gpu_tile(s.row);
      for (int r = 0; r < s.ranks; ++r) {
        GemmLaunch l = launch_of(r, s.row);
        l.a_stride = s.k;
        for (int p = 0; p < s.ranks; ++p) l.a.base[p] = ranks[p]->x.bytes.as();
        l.c.base[r] = ranks[r]->y.bytes.as(), l.c_stride = s.n;
        l.order = arrange(Order::kArrival, Tiling::kWithin, layout.shards, tile.tile_m, tile.tiles_n(s.n), 4, r);
        l.gate = Remote{r, layout.shards, s.k, ranks[r]->words.as<Word>(), kGoal, watch(r)};
        l.route = Keep{r, s.m}, l.store = store;
        enqueue_gemm(l, ranks[r]->compute);
        for (int p = 0; p < s.ranks; ++p)
          must(cudaMemcpyAsync(ranks[p]->words.as<Word>() + r, ranks[r]->goal.as<Word>(), sizeof(Word),
                               cudaMemcpyDeviceToDevice, ranks[r]->copies));
      }
      must(cudaDeviceSynchronize());
      for (int r = 0; r < s.ranks; ++r) EXPECT_EQ(error(r), 0) << describe(s) << ", rank " << r;
    }
}

TEST_F(AllGather, AMissingRankEndsTheCallOnAllAndPoisonsTheOutput) {
  Shape const s{3, 5, 600, 256, 256, true};
  prepare(s, 0, 1);
  for (int r = 0; r < s.ranks; ++r) multiply(r, s, 0.3);
  for (int r = 0; r < 2; ++r) push(r, s);  // rank 2 sends nothing
  must(cudaDeviceSynchronize());
  for (int r = 0; r < s.ranks; ++r) {
    Word abort = 0;
    must(cudaMemcpy(&abort, ranks[r]->abort.as<void>(), sizeof abort, cudaMemcpyDeviceToHost));
    EXPECT_EQ(abort >> 8, static_cast<Word>(Reason::kTimeout)) << "rank " << r;
  }
  for (int r = 0; r < 2; ++r) EXPECT_TRUE(std::isnan(error(r))) << "rank " << r;
  Record record;
  must(cudaMemcpy(&record, ranks[0]->record.as<void>(), sizeof record, cudaMemcpyDeviceToHost));
  EXPECT_EQ(record.peer, 2u);
  EXPECT_EQ(record.goal, kGoal);
}

class ReduceScatter : public SharedGpu {
 protected:
  Reference total, bias;
  BandWords bands;
  int64_t slot_rows = 0;

  void prepare(Shape const& s, bool all_reduce) {
    ranks.clear();
    prepare_gemm(gpu_tile(s.row), s.dtype, WeightLayout::kOutIn), prepare_slot_sum();
    std::mt19937 random(static_cast<unsigned>(s.m + s.k));
    bands = {{s.m, all_reduce ? 1 : s.ranks, 1}, gpu_tile(s.row).tile_m, Tiling::kAcross};
    slot_rows = bands.shards.largest();
    total.setZero(s.m, s.n);
    for (int r = 0; r < s.ranks; ++r) {
      DeviceMatrix x(s.dtype, s.m, s.k), w(s.dtype, s.n, s.k), y(s.dtype, bands.shards.size(all_reduce ? 0 : r), s.n);
      x.fill(random, s.whole), w.fill(random, s.whole), y.poison();
      total += x.values() * w.values().transpose();
      int64_t const bytes = s.ranks * slot_rows * s.n * 2;
      ranks.push_back(std::make_unique<Rank>(std::move(x), std::move(w), std::move(y), bytes,
                                             int64_t{s.ranks} * s.ranks * bands.most()));
    }
    must(cudaDeviceSynchronize());
  }

  GemmLaunch launch(int r, Shape const& s) {
    TileRow const tile = gpu_tile(s.row);
    GemmLaunch l = launch_of(r, s.row);
    l.a.base[r] = ranks[r]->x.bytes.as(), l.a_stride = s.k, l.c_stride = s.n;
    for (int p = 0; p < s.ranks; ++p) l.c.base[p] = ranks[p]->data.as();
    l.gate = Open{r, s.k};
    l.order = arrange(Order::kRotated, Tiling::kAcross, bands.shards, tile.tile_m, tile.tiles_n(s.n), 4,
                      bands.shards.ranks > 1 ? r : 0);
    return l;
  }
  Announcer announcer(int r, Shape const& s) {
    Announcer out;
    out.bands = bands, out.tiles_n = gpu_tile(s.row).announcements(s.n);
    out.counts = ranks[r]->counts.as<Word>(), out.words = words(), out.goal = kGoal;
    return out;
  }
  void sum(int r, Shape const& s, int owner) {
    SlotSum sum;
    sum.bands = bands, sum.owner = owner, sum.sources = sum.parts = s.ranks;
    sum.words = ranks[r]->words.as<Word>(), sum.goal = kGoal, sum.watch = watch(r);
    sum.slots = ranks[r]->data.as<void>(), sum.slot_rows = slot_rows, sum.out = ranks[r]->y.tensor();
    sum_slots(sum, kSumBlocks, ranks[r]->copies);
  }
  void expect(Shape const& s, Plan const& plan = {}, bool all_reduce = false) {
    must(cudaDeviceSynchronize());
    for (int r = 0; r < s.ranks; ++r) {
      ranks[r]->y.download();
      Reference const reference =
          all_reduce ? total : Reference(total.middleRows(bands.shards.begin(r), ranks[r]->y.rows));
      double const error = relative_error(ranks[r]->y.values(), reference);
      if (s.whole)
        EXPECT_EQ(error, 0) << describe(s) << ", rank " << r;
      else
        EXPECT_LE(error, bench::tolerance(s.dtype, Op::kGemmReduceScatter, plan, s.ranks))
            << describe(s) << ", rank " << r;
    }
  }
  static std::vector<Shape> shapes() {
    return {{2, 0, 512, 512, 64, true},
            {3, 8, 1000, 344, 72, true},
            {8, 5, 2048, 256, 64, true},
            {8, 3, 63, 200, 40, true},
            {8, 12, 7, 96, 40, true},
            {4, 2, 777, 312, 56, true, DType::kF16},
            {8, 9, 1024, 528, 512, false},
            {2, 11, 700, 264, 512, false},
            {5, 1, 610, 520, 64, true},
            {2, kSm80 + 1, 512, 512, 64, true},
            {3, kSm80 + 2, 1000, 344, 72, true},
            {8, kSm80 + 7, 63, 200, 40, true},
            {4, kSm80 + 6, 777, 312, 56, true, DType::kF16},
            {8, kSm80 + 2, 1024, 528, 512, false}};
  }
};

TEST_F(ReduceScatter, PushIntoSlots) {
  for (Shape const& s : shapes())
    for (StoreKind store : {StoreKind::kTensor, StoreKind::kBulk, StoreKind::kVector}) {
      prepare(s, false);
      for (int r = 0; r < s.ranks; ++r) sum(r, s, r);  // waits for what is yet to be launched
      for (int r = 0; r < s.ranks; ++r) {
        GemmLaunch l = launch(r, s);
        l.route = Push{r, slot_rows, announcer(r, s)}, l.store = store;
        enqueue_gemm(l, ranks[r]->compute);
      }
      expect(s);
    }
}

TEST_F(ReduceScatter, StageAndCopy) {
  for (Shape const& s : shapes()) {
    prepare(s, false);
    std::vector<DeviceBytes> staging;
    for (int r = 0; r < s.ranks; ++r) staging.emplace_back(s.m * s.n * 2);
    for (int r = 0; r < s.ranks; ++r) {
      GemmLaunch l = launch(r, s);
      l.c.base[r] = staging[r].as();
      l.route = Stage{r, announcer(r, s)};
      enqueue_gemm(l, ranks[r]->compute);
    }
    must(cudaDeviceSynchronize());
    for (int r = 0; r < s.ranks; ++r)  // the copy engine's part, after the fact
      for (int p = 0; p < s.ranks; ++p)
        must(cudaMemcpy(ranks[p]->data.as<char>() + r * slot_rows * s.n * 2,
                        staging[r].as<char>() + bands.shards.begin(p) * s.n * 2, bands.shards.size(p) * s.n * 2,
                        cudaMemcpyDeviceToDevice));
    arrive();
    for (int r = 0; r < s.ranks; ++r) sum(r, s, r);
    expect(s);
  }
}

TEST_F(ReduceScatter, AddedInPlace) {
  for (Shape const& s : shapes()) {
    if (gpu_tile(s.row).engine == EngineKind::kSm80) continue;  // it does not add at the owner
    prepare(s, false);
    for (int r = 0; r < s.ranks; ++r) must(cudaMemset(ranks[r]->y.bytes.as<void>(), 0, ranks[r]->y.bytes.bytes()));
    must(cudaDeviceSynchronize());
    for (int r = 0; r < s.ranks; ++r) {
      GemmLaunch l = launch(r, s);
      for (int p = 0; p < s.ranks; ++p) l.c.base[p] = ranks[p]->y.bytes.as();
      l.route = Sum{r, announcer(r, s)}, l.store = r % 2 ? StoreKind::kBulk : StoreKind::kTensor;
      enqueue_gemm(l, ranks[r]->compute);
    }
    expect(s, parse_plan("route=sum"));
  }
}

TEST_F(ReduceScatter, BroadcastForAllReduce) {
  for (Shape const& s : shapes()) {
    if (s.m > 800) continue;
    prepare(s, true);
    for (int r = 0; r < s.ranks; ++r) {
      sum(r, s, 0);
      GemmLaunch l = launch(r, s);
      l.route = Broadcast{r, s.ranks, s.m, announcer(r, s)};
      enqueue_gemm(l, ranks[r]->compute);
    }
    expect(s, {}, true);
  }
}

}  // namespace
}  // namespace flux::test
