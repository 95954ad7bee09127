// What calls of operators on a GPU must withstand: graphs that are replayed, ranks that come late, two operators side
// by side, a rank that does not come.
#include <unistd.h>

#include <map>
#include <set>
#include <thread>

#include "gpu/mlp.h"
#include "kernel/call.h"
#include "kernel/gemm.h"
#include "trace/timeline.h"

namespace flux::test {
namespace {

using Calls = SharedGpuWorld;

void pause(std::mt19937& random, int most_us) { usleep(random() % most_us); }

TEST_F(Calls, AGraphIsReplayedBetweenEagerCalls) {
  for (auto line : {"buffers=2", "buffers=1", "transport=pull route=stage"})
    run_shared_gpu(3, options(), [&](World& world) {
      Layer layer(world);
      Mlp mlp(world, layer, line);
      OwnStream stream;
      mlp.enqueue(stream), stream.settle();
      auto const expected = layer.results();
      for (float x : expected) ASSERT_TRUE(std::isfinite(x));

      cudaGraph_t graph;
      cudaGraphExec_t replay;
      must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      mlp.enqueue(stream);
      must(cudaStreamEndCapture(stream, &graph));
      must(cudaGraphInstantiate(&replay, graph, 0)), must(cudaGraphUpload(replay, stream)), stream.settle();
      world.barrier();  // as in Buffers
      std::mt19937 random(world.rank());
      for (int round = 0; round < 300; ++round) {
        for (int i = 0; i < round % 4; ++i) mlp.enqueue(stream);
        if (round % 50 == 0) layer.poison();
        pause(random, round % 3 == 0 ? 300 : 10);  // ranks drift apart
        for (int i = 0; i < 7; ++i) must(cudaGraphLaunch(replay, stream));
        if (round % 50 != 49) continue;
        stream.settle();
        world.check();
        ASSERT_EQ(layer.results(), expected) << line << ", rank " << world.rank() << ", round " << round;
      }
      stream.settle();
      must(cudaGraphExecDestroy(replay));
      must(cudaGraphDestroy(graph));
    });
}

TEST_F(Calls, ManyWithRandomRowsAndDelays) {
  int64_t const calls = getenv("FLUX_CALLS") ? std::max<int64_t>(atoll(getenv("FLUX_CALLS")) / 8 * 8, 8) : 2000;
  for (auto line : {"", "transport=remote route=stage comm_rows=16"})
    run_shared_gpu(4, options(), [&](World& world) {
      Layer layer(world);
      Mlp mlp(world, layer, line);
      OwnStream stream;
      std::mt19937 random(5), delays(world.rank());
      std::vector<std::vector<float>> first;
      for (int64_t call = 0; call < calls; ++call) {
        if (call % (calls / 2) == 0) random.seed(5);  // both halves alike
        mlp.enqueue(stream, 1 + random() % Layer::kM);
        if (call % 16 == world.rank()) pause(delays, 200);
        if (call % (calls / 8) != calls / 8 - 1) continue;
        stream.settle();
        world.check();
        first.push_back(layer.results());
      }
      for (size_t i = 0; i < 4; ++i)
        ASSERT_EQ(first[i], first[i + 4]) << line << ", rank " << world.rank() << ", eighth " << i;
    });
}

TEST_F(Calls, TwoOperatorsOnTwoStreams) {
  run_shared_gpu(2, options(), [&](World& world) {
    Layer first(world), second(world);
    Mlp one(world, first, "spare=2 lane=0"), two(world, second, "spare=2 lane=1");
    OwnStream a, b;
    one.enqueue(a), a.settle();
    auto const expected = first.results();
    for (int round = 0; round < 200; ++round) {
      if ((round + world.rank()) % 2 == 0)  // in different order on the two ranks
        one.enqueue(a), two.enqueue(b);
      else
        two.enqueue(b), one.enqueue(a);
    }
    a.settle(), b.settle();
    world.check();
    EXPECT_EQ(first.results(), expected);
    EXPECT_EQ(second.results(), expected);
  });
}

TEST_F(Calls, AMissingRankEndsTheCallOnAllAndANewWorldWorks) {
  for (int missing : {0, 2})
    run_shared_gpu(3, options(1.0), [&](World& world) {
      Layer layer(world);
      Mlp mlp(world, layer);
      OwnStream stream;
      mlp.enqueue(stream), stream.settle();
      world.barrier();
      layer.poison();
      if (world.rank() != missing) {
        for (int i = 0; i < 3; ++i) {
          try {
            mlp.enqueue(stream);
          } catch (Error const&) {  // a later call may see the end of an earlier one
          }
        }
        stream.settle();
        try {
          world.check();
          ADD_FAILURE() << "rank " << world.rank() << " was not told";
        } catch (Error const& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
          EXPECT_NE(std::string(error.what()).find("from rank " + std::to_string(missing)), std::string::npos)
              << error.what();
        }
        auto const results = layer.results();
        EXPECT_TRUE(std::isnan(results.back())) << "rank " << world.rank() << " must not leave a number";
        EXPECT_THROW(mlp.enqueue(stream), Error);
      } else {
        usleep(2'500'000);
        EXPECT_THROW(world.check(), Error);
      }
    });
  run_shared_gpu(3, options(), [&](World& world) {
    Layer layer(world);
    Mlp mlp(world, layer);
    OwnStream stream;
    mlp.enqueue(stream), stream.settle();
    world.check();
    for (float x : layer.results()) ASSERT_TRUE(std::isfinite(x));
  });
}

TEST_F(Calls, RanksThatCallDifferentSizesAreToldAtOnce) {
  auto const start = std::chrono::steady_clock::now();
  run_shared_gpu(2, options(30), [&](World& world) {
    Layer layer(world);
    Mlp mlp(world, layer);
    OwnStream stream;
    mlp.enqueue(stream), stream.settle();
    world.barrier();
    try {
      mlp.enqueue(stream, 100 + world.rank());
      stream.settle();
      world.check();
      ADD_FAILURE() << "rank " << world.rank() << " was not told";
    } catch (Error const& error) {
      EXPECT_NE(std::string(error.what()).find("different calls"), std::string::npos) << error.what();
    }
    stream.settle();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(Calls, ARecordedCallShowsEveryTileAndCopy) {
  run_shared_gpu(2, options(), [&](World& world) {
    Layer layer(world);
    AllGatherGemm gather(world, {Layer::kM, Layer::kK, DType::kBF16}, parse_plan("tile=64x64 comm_rows=shard"));
    Linear linear;
    linear.weight = layer.up.tensor(), linear.out = layer.hidden.tensor();
    OwnStream stream;
    Timeline timeline;
    gather.record(&timeline);
    gather.run(Layer::kM, layer.x.tensor(), linear, stream);  // and waits for its end

    std::map<SpanKind, std::set<std::pair<int64_t, int>>> tiles;
    int copies = 0;
    for (Span const& span : timeline.spans) {
      EXPECT_LE(span.begin_ns, span.end_ns) << name(span.kind);
      EXPECT_EQ(span.rank, world.rank());
      if (span.kind == SpanKind::kMaths || span.kind == SpanKind::kStore) tiles[span.kind].insert({span.row, span.n});
      if (span.kind != SpanKind::kCopy) continue;
      ++copies;
      EXPECT_EQ(span.peer, 1 - world.rank());
      EXPECT_EQ(span.rows, layer.x.rows);
    }
    EXPECT_EQ(copies, 1);
    EXPECT_EQ(tiles[SpanKind::kMaths].size(), 4u * 2u);  // 200 x 128 in tiles of 64 x 64
    EXPECT_EQ(tiles[SpanKind::kStore], tiles[SpanKind::kMaths]);

    cudaGraph_t graph;
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    EXPECT_THROW(gather.run(Layer::kM, layer.x.tensor(), linear, stream), Error);
    must(cudaStreamEndCapture(stream, &graph));
    if (graph) must(cudaGraphDestroy(graph));
    gather.record(nullptr);
    gather.run(Layer::kM, layer.x.tensor(), linear, stream), stream.settle();
    world.check();
  });
}

// Rule of the protocol: what begins a call finds room while a GEMM that waits holds all but the spare multiprocessors.
TEST_F(Calls, ACallBeginsWhileAWaitingGemmHoldsTheGpu) {
  std::mt19937 random(1);
  for (int row = 0; row < kGpuTiles; ++row) {
    TileRow const tile = gpu_tile(row);
    int64_t const k = 64, n = 16 * tile.tile_n, m = 64 * tile.tile_m;
    DeviceMatrix x(DType::kBF16, m, k), w(DType::kBF16, n, k), y(DType::kBF16, m, n);
    DeviceBytes words(64 * sizeof(Word)), record(sizeof(Record));
    x.fill(random, true), w.fill(random, true);
    prepare_gemm(tile, DType::kBF16, WeightLayout::kOutIn), prepare_calls();
    Word const goal = 0x5eed, granted = kGranted;
    Word* const word = words.as<Word>();  // [0] abort, [2, 4) arrivals, [8, 10) credits, [12, 14) begun
    must(cudaMemcpy(word + 9, &granted, sizeof granted, cudaMemcpyHostToDevice));
    arrive();
    CallWords call;
    call.digest = goal, call.watch.limit_ns = 3'000'000'000, call.watch.rank = 0, call.watch.ranks = 2;
    call.watch.record = record.as<Record>();
    for (int r = 0; r < 2; ++r)
      call.watch.abort.base[r] = word, call.credits.base[r] = word + 8, call.begun.base[r] = word + 12;

    GemmLaunch l;
    l.tile = tile, l.weight = w.tensor(), l.a.base[0] = x.bytes.as(), l.a_stride = k;
    l.c.base[0] = y.bytes.as(), l.c_stride = n;
    l.order = arrange(Order::kNaive, Tiling::kAcross, {m, 2, 1}, tile.tile_m, tile.tiles_n(n), 4, 0);
    Arrival arrival;
    arrival.layout = {{m, 2, 1}, {k, 1, 64}, m}, arrival.words = word + 2, arrival.goal = goal;
    arrival.watch = call.watch;
    // All tiles wait for the peer's shard: rank 1's own is rank 0's.
    arrival.rank = 1;
    l.gate = arrival, l.route = Keep{0, m};
    cudaDeviceGetAttribute(&l.processors, cudaDevAttrMultiProcessorCount, 0);
    l.processors -= 2;
    l.a.base[1] = x.bytes.as();
    OwnStream gemm, side, writes;
    enqueue_gemm(l, gemm);
    usleep(2000);
    enqueue_begin(call, side);
    usleep(2000);
    EXPECT_EQ(cudaStreamQuery(gemm), cudaErrorNotReady) << "row " << row << ": the GEMM was to wait";
    EXPECT_EQ(cudaStreamQuery(side), cudaSuccess) << "row " << row << ": no room for the beginning of a call";
    Word const both[2] = {goal, goal};
    must(cudaMemcpyAsync(word + 2, both, sizeof both, cudaMemcpyHostToDevice, writes));
    gemm.settle(), side.settle();
    cudaGetLastError();
  }
}

}  // namespace
}  // namespace flux::test
