// Buffers of operators on a GPU: used by several in turn, and kept until the calls on them are over.
#include "gpu/mlp.h"

namespace flux::test {
namespace {

using Buffers = SharedGpuWorld;

TEST_F(Buffers, LayersUseAWorkspaceInTurn) {
  for (auto line : {"", "buffers=1", "transport=pull route=stage", "fused=no"})
    run_shared_gpu(3, options(), [&](World& world) {
      Layer first(world), second(world), apart(world);
      auto workspace = std::make_unique<Workspace>(world, Mlp::need(world, line));
      Mlp one(world, first, line, workspace.get()), two(world, second, line, workspace.get()), own(world, apart, line);
      workspace.reset();  // the layers keep what they use
      OwnStream stream, other;
      own.enqueue(stream), stream.settle();
      auto const expected = apart.results();

      cudaGraph_t graph;
      cudaGraphExec_t replay;
      must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      one.enqueue(stream), two.enqueue(stream), one.enqueue(stream);
      must(cudaStreamEndCapture(stream, &graph));
      must(cudaGraphInstantiate(&replay, graph, 0)), must(cudaGraphUpload(replay, stream)), stream.settle();
      world.barrier();  // a driver that loads what a graph needs waits for every rank's kernels
      for (int round = 0; round < 60; ++round) {
        one.enqueue(stream), two.enqueue(stream);
        if (round % 3 == 0) one.enqueue(stream);  // so replays meet both buffers
        if (round % 10 == 9) stream.settle(), first.poison(), second.poison();
        must(cudaGraphLaunch(replay, stream));
        if (round % 10 != 9) continue;
        stream.settle();
        world.check();
        ASSERT_EQ(first.results(), expected) << line << ", rank " << world.rank() << ", round " << round;
        ASSERT_EQ(second.results(), expected) << line << ", rank " << world.rank() << ", round " << round;
      }
      // On two streams: each call comes after the one before.
      first.poison(), second.poison(), must(cudaDeviceSynchronize()), world.barrier();
      for (int round = 0; round < 50; ++round) one.enqueue(stream), two.enqueue(other);
      stream.settle(), other.settle();
      world.check();
      EXPECT_EQ(first.results(), expected) << line << ", rank " << world.rank();
      EXPECT_EQ(second.results(), expected) << line << ", rank " << world.rank();
      must(cudaGraphExecDestroy(replay)), must(cudaGraphDestroy(graph));
    });
}

// Operators whose calls are under way when they go away; hosts that do not wait for anything.
TEST_F(Buffers, OperatorsGoAwayWhileTheirCallsAreUnderWay) {
  run_shared_gpu(2, options(), [&](World& world) {
    Layer layer(world), apart(world);
    OwnStream stream;
    Mlp own(world, apart);
    own.enqueue(stream), stream.settle();
    auto const expected = apart.results();
    Workspace const workspace(world, Mlp::need(world, ""));
    for (int i = 0; i < 40; ++i) {
      Mlp mlp(world, layer, "", i % 2 ? &workspace : nullptr);
      for (int call = 0; call < 1 + i % 5; ++call) mlp.enqueue(stream);
    }
    stream.settle();
    world.check();
    EXPECT_EQ(layer.results(), expected);
    Mlp mlp(world, layer);
    layer.poison(), must(cudaDeviceSynchronize()), world.barrier();
    for (int call = 0; call < 1000; ++call) mlp.enqueue(stream);
    stream.settle();
    world.check();
    EXPECT_EQ(layer.results(), expected);
  });
}

TEST_F(Buffers, TooMuchIsSaidBeforeAnyIsTaken) {
  run_shared_gpu(2, options(), [&](World& world) {
    size_t before = 0, after = 0, total = 0;
    must(cudaMemGetInfo(&before, &total));
    world.barrier();
    MemoryNeed const need = GemmReduceScatter::memory(world, {int64_t{1} << 27, 4096, DType::kBF16});
    try {
      GemmReduceScatter op(world, {int64_t{1} << 27, 4096, DType::kBF16});
      ADD_FAILURE() << "no error";
    } catch (Error const& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kDevice);
      EXPECT_NE(std::string(error.what()).find("needs " + std::to_string(need.total())), std::string::npos)
          << error.what();
    }
    world.barrier();
    must(cudaMemGetInfo(&after, &total));
    EXPECT_GE(after + (64 << 20), before);
  });
}

}  // namespace
}  // namespace flux::test
