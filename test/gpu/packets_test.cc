// GEMM+AR by packets: the same bits whoever is late, whatever was sent before, however long it has run.
#include <unistd.h>

#include <map>
#include <optional>

#include "flux/op.h"
#include "gpu/world.h"
#include "kernel/packets.h"

namespace flux::test {
namespace {

using Packets = SharedGpuWorld;

WorldOptions options() {
  WorldOptions o;
  o.limit_seconds = 20;
  return o;
}

// Calls of different rows, data and shots, as graphs, in one random order on all ranks, each late in its own way.
TEST_F(Packets, ReplaysInAnyOrderWithRandomSkew) {
  int64_t const replays = getenv("FLUX_CALLS") ? atoll(getenv("FLUX_CALLS")) : 2000;
  constexpr int64_t kN = 1064, kK = 256, kMost = 40;
  for (auto line : {"", "shots=two", "shots=one buffers=1"})
    run_shared_gpu(4, options(), [&](World& world) {
      std::mt19937 random(world.rank() + 1);
      GemmAllReduce reduce(world, {kMost, kN, DType::kBF16, kK}, parse_plan(line));
      DeviceMatrix weight(DType::kBF16, kN, kK / world.size()), gamma(DType::kBF16, 1, kN);
      weight.fill(random, false), gamma.fill(random, false);
      OwnStream stream;
      struct Case {
        int64_t m;
        DeviceMatrix x, residual, y, normed;
        std::vector<float> first;
        cudaGraphExec_t graph = nullptr;
        Case(int64_t m, int64_t k)
            : m(m),
              x(DType::kBF16, m, k),
              residual(DType::kBF16, m, kN),
              y(DType::kBF16, m, kN),
              normed(DType::kBF16, m, kN) {}
        void poison() { y.poison(), normed.poison(); }
        std::vector<float> results() {
          y.download(), normed.download();
          std::vector<float> all = y.host;
          all.insert(all.end(), normed.host.begin(), normed.host.end());
          return all;
        }
      };
      std::vector<std::unique_ptr<Case>> cases;
      for (int64_t m : {1, 1, 3, 8, 8, 33, 40}) {
        Case& c = *cases.emplace_back(std::make_unique<Case>(m, kK / world.size()));
        c.x.fill(random, false), c.residual.fill(random, false), c.poison();
      }
      // Memory is set and read, and graphs are made, one after the other on all ranks, while no kernel waits.
      auto meet = [&](auto&& act) {
        stream.settle();
        world.barrier();
        act();
        world.barrier();
      };
      auto settle_memory = [] { must(cudaDeviceSynchronize()); };
      auto call = [&](Case& c) {
        SumEpilogue e;
        e.residual = c.residual.tensor(), e.norm_weight = gamma.tensor(), e.normed = c.normed.tensor();
        reduce.run(c.m, c.x.tensor(), weight.tensor(), WeightLayout::kOutIn, c.y.tensor(), e, stream);
      };
      meet(settle_memory);
      for (auto& c : cases) {
        call(*c);
        meet([&] { c->first = c->results(); });
        meet([&] {
          cudaGraph_t graph;
          must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
          call(*c);
          must(cudaStreamEndCapture(stream, &graph));
          must(cudaGraphInstantiate(&c->graph, graph, 0)), must(cudaGraphUpload(c->graph, stream));
          must(cudaGraphDestroy(graph));
        });
        for (float x : c->first) ASSERT_TRUE(std::isfinite(x)) << c->m;
      }
      std::mt19937 order(7), delays(world.rank());
      for (int64_t i = 0; i < replays; ++i) {
        must(cudaGraphLaunch(cases[order() % cases.size()]->graph, stream));
        if (delays() % 64 == 0) usleep(delays() % 300);
        if (i % 50 == 49) stream.settle();  // no rank is further ahead on the host
        if (i % 500 != 499 && i + 1 < replays) continue;
        for (auto& c : cases) must(cudaGraphLaunch(c->graph, stream));  // none is left poisoned
        meet([&] {
          world.check();
          for (auto& c : cases) {
            EXPECT_EQ(c->results(), c->first)
                << line << ", rank " << world.rank() << ", m " << c->m << ", replay " << i;
            c->poison();
          }
          settle_memory();
        });
        if (testing::Test::HasFailure()) break;
      }
      stream.settle();
      for (auto& c : cases) must(cudaGraphExecDestroy(c->graph));
    });
}

TEST_F(Packets, NanAndInfinityArriveAsTheyAre) {
  constexpr int64_t kM = 5, kN = 64, kK = 64;
  for (auto line : {"shots=one", "shots=two"})
    run_shared_gpu(3, options(), [&](World& world) {
      GemmAllReduce reduce(world, {kM, kN, DType::kBF16, 3 * kK}, parse_plan(line));
      DeviceMatrix x(DType::kBF16, kM, kK), weight(DType::kBF16, kN, kK), y(DType::kBF16, kM, kN);
      for (int64_t i = 0; i < kM * kK; ++i) x.host[i] = i % kK == 0 ? 1.f : 0.f;
      for (int64_t i = 0; i < kN * kK; ++i) weight.host[i] = 1.f;
      if (world.rank() == 1) x.host[0] = NAN, x.host[kK] = INFINITY, x.host[2 * kK] = -INFINITY;
      x.upload(), weight.upload();
      OwnStream stream;
      reduce.run(kM, x.tensor(), weight.tensor(), WeightLayout::kOutIn, y.tensor(), {}, stream);
      stream.settle();
      world.check();
      y.download();
      for (int64_t j = 0; j < kN; ++j) {
        EXPECT_TRUE(std::isnan(y.host[j]));
        EXPECT_EQ(y.host[kN + j], INFINITY);
        EXPECT_EQ(y.host[2 * kN + j], -INFINITY);
        EXPECT_EQ(y.host[3 * kN + j], 3.f);
        EXPECT_EQ(y.host[4 * kN + j], 3.f);
      }
    });
}

/// The kernel alone, on two ranks of this device.
class PacketKernel : public OnHopper {
 protected:
  static constexpr int kRanks = 2;
  static constexpr int64_t kColumns = 72;  // 12 packets a row
  void SetUp() override {
    OnHopper::SetUp();
    if (IsSkipped()) return;
    prepare_packets();
    for (int r = 0; r < kRanks; ++r) {
      Rank& k = ranks_[r].emplace();
      for (size_t i = 0; i < k.own.host.size(); ++i)
        k.own.host[i] = static_cast<float>(1 + r + static_cast<int>(i % 50));
      k.own.upload();
    }
  }
  void set_calls(Word call) {
    for (auto& r : ranks_) must(cudaMemcpy(r->calls.as<Word>(), &call, sizeof call, cudaMemcpyHostToDevice));
    arrive();
  }
  void sum(int64_t m) {
    for (int r = 0; r < kRanks; ++r) {
      Rank& k = *ranks_[r];
      PacketExchange s;
      s.layout = {{m, 1, 1}, kRanks, packets_of(kColumns * 2)};
      for (int p = 0; p < kRanks; ++p) {
        s.packets.base[p] = ranks_[p]->packets.as<Packet>(), s.watch.abort.base[p] = ranks_[p]->words.as<Word>();
      }
      s.half = kHalf, s.calls = k.calls.as<Word>(), s.digest = 0x35;
      s.watch.record = k.record.as<Record>(), s.watch.rank = r, s.watch.ranks = kRanks,
      s.watch.limit_ns = 2'000'000'000;
      s.own = k.own.bytes.as(), s.own_stride = kColumns, s.out = k.y.tensor(), s.out.rows = m;
      exchange_packets(s, 8, k.stream);
    }
    for (auto& r : ranks_) r->stream.settle();
  }
  void expect_sums(int64_t m) {
    for (auto& r : ranks_) {
      r->y.download();
      for (int64_t i = 0; i < m * kColumns; ++i)
        ASSERT_EQ(r->y.host[i], ranks_[0]->own.host[i] + ranks_[1]->own.host[i]) << i;
    }
  }
  static constexpr int64_t kM = 4, kHalf = kRanks * kM * 12;
  struct Rank {
    DeviceMatrix own{DType::kBF16, kM, kColumns}, y{DType::kBF16, kM, kColumns};
    DeviceBytes packets{2 * kHalf * int64_t{sizeof(Packet)}}, calls{2 * sizeof(Word)}, words{64},
        record{sizeof(Record)};
    OwnStream stream;
  };
  std::optional<Rank> ranks_[kRanks];
};

TEST_F(PacketKernel, TagsComeAgainWithoutHarm) {
  for (Word call : {Word{0}, kTaggedCalls - 2, Word{0} - 2}) {
    set_calls(call);
    for (int i = 0; i < 6; ++i) {
      for (auto& r : ranks_) r->y.poison();
      sum(1 + i % kM), expect_sums(1 + i % kM);
    }
  }
}

// What a call of many rows left is gone before its tags come again.
TEST_F(PacketKernel, PacketsThatNobodyAwaitsAreCleared) {
  sum(kM), sum(kM);
  for (int64_t i = 0; i < 2 * kHalf; ++i) sum(1);
  expect_sums(1);
  PacketLayout const layout{{1, 1, 1}, kRanks, 12};
  for (int r = 0; r < kRanks; ++r) {
    std::vector<Packet> packets(2 * kHalf);
    must(cudaMemcpy(packets.data(), ranks_[r]->packets.as(), packets.size() * sizeof(Packet), cudaMemcpyDeviceToHost));
    for (int64_t i = 0; i < 2 * kHalf; ++i)
      ASSERT_EQ(packets[i].tag != 0, layout.awaited(r, i % kHalf)) << "rank " << r << ", packet " << i;
  }
}

}  // namespace
}  // namespace flux::test
