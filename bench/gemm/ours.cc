#include "bench/gemm/ours.h"

#include <vector>

#include "bench/gemm/reference.h"

namespace flux::bench {
namespace {

constexpr Word kGoal = 1;
constexpr int64_t kWords = 1 << 16;

Shards shards_of(GemmProblem const& p) { return {p.m, p.tp, 1}; }

}  // namespace

GemmBuffers::GemmBuffers(GemmProblem const& p)
    : x(p.m * p.rank_k() * size_of(p.dtype)),
      weight(p.rank_n() * p.rank_k() * size_of(p.dtype)),
      bias(p.rank_n() * 2),
      out(p.m * p.columns() * 2),
      words(kWords * sizeof(Word)),
      counts(kWords * sizeof(Word)) {
  fill_random(x.data(), p.dtype, p.m * p.rank_k(), 1);
  fill_random(weight.data(), p.dtype, p.rank_n() * p.rank_k(), 2);
  fill_random(bias.data(), result_of(p.dtype), p.rank_n(), 3);
  std::vector<Word> const set(kWords, kGoal);
  must(cudaMemcpy(words.data(), set.data(), words.bytes(), cudaMemcpyHostToDevice));
  must(cudaMemset(counts.data(), 0, counts.bytes()));
}

GemmLaunch plain_launch(GemmProblem const& p, GemmBuffers const& buffers, TileRow const& tile, int band) {
  bool const out_in = p.layout == WeightLayout::kOutIn;
  GemmLaunch l;
  l.tile = tile;
  l.a.base[0] = buffers.x.data(), l.a_stride = p.rank_k();
  l.weight = matrix(buffers.weight.data(), p.dtype, out_in ? p.rank_n() : p.rank_k(), out_in ? p.rank_k() : p.rank_n());
  l.layout = p.layout;
  l.c.base[0] = buffers.out.data(), l.c_stride = p.columns();
  if (p.epilogue == "bias_gelu") {
    l.activation = Activation::kGelu;
    l.bias = matrix(buffers.bias.data(), result_of(p.dtype), 1, p.rank_n());
  }
  if (p.gated()) l.activation = Activation::kSilu, l.gated = true;
  l.order = arrange(Order::kNaive, Tiling::kAcross, shards_of(p), tile.tile_m, tile.tiles_n(p.rank_n()), band, 0);
  l.gate = Open{0, p.rank_k()};
  l.route = Keep{0, p.m};
  return l;
}

GemmLaunch open_launch(GemmProblem const& p, GemmBuffers const& buffers, TileRow const& tile, int band) {
  GemmLaunch l = plain_launch(p, buffers, tile, band);
  bool const gathers = p.op == "ag_gemm";
  Shards const shards = shards_of(p);
  l.order = arrange(gathers ? Order::kArrival : Order::kRotated, Tiling::kAcross, shards, tile.tile_m,
                    tile.tiles_n(p.rank_n()), band, 0, band);
  Word* const words = static_cast<Word*>(buffers.words.data());
  if (gathers) {
    Arrival gate;
    gate.layout = {shards, {p.rank_k(), 1, 64}, shards.largest()};
    gate.words = words, gate.goal = kGoal;
    gate.watch.abort.base[0] = static_cast<Word*>(buffers.counts.data()) + kWords - 1;  // stays 0
    l.gate = gate;
  } else {
    Push route;
    route.slot_rows = shards.largest();
    route.out.bands = {shards, tile.tile_m, Tiling::kAcross};
    route.out.tiles_n = tile.announcements(p.rank_n());
    route.out.counts = static_cast<Word*>(buffers.counts.data());
    route.out.goal = kGoal;
    for (int owner = 0; owner < p.tp; ++owner) {  // each owner's only used slot: its rows of one [m, n]
      route.out.words.base[owner] = words;
      l.c.base[owner] = static_cast<char*>(buffers.out.data()) + shards.begin(owner) * p.columns() * 2;
    }
    l.route = route;
  }
  return l;
}

}  // namespace flux::bench
