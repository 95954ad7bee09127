// Every row of the tile table and several bands on every problem: the figures that the cost function is fitted to.
//   gemm_sweep <workloads.json> <tiers, comma> <ranks, comma> <least m> <rounds> <cublasLt path or -> [rows]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "bench/gemm/cublaslt.h"
#include "bench/gemm/ours.h"
#include "bench/gemm/reference.h"
#include "bench/gemm/timing.h"
#include "plan/choose_tile.h"
#include "world/gpu.h"

namespace flux::bench {
namespace {

std::vector<std::string> split(std::string const& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

int sweep(int argc, char** argv) {
  if (argc < 7) throw Error(ErrorKind::kInvalid, "six arguments, see the head of this file");
  std::vector<int> ranks;
  for (auto const& r : split(argv[3])) ranks.push_back(std::stoi(r));
  int const rounds = std::stoi(argv[5]);
  std::string const library = argv[6];
  CublasLt* const cublas = library == "-" ? nullptr : new CublasLt(library);
  std::mt19937 random(1);
  for (GemmProblem const& p : read_problems(argv[1], split(argv[2]), ranks, std::stoll(argv[4]))) {
    GemmBuffers buffers(p);
    struct Tried {
      TileRow tile;
      int band;
      double error;
    };
    std::vector<Tried> tried;
    std::vector<GpuMethod> methods;
    if (cublas) methods = cublas->best(p, buffers.x.data(), buffers.weight.data(), buffers.out.data(), 2, random);
    size_t const theirs = methods.size();
    double const estimate = 2e-6 * p.m * p.rank_n() * p.rank_k() / 700e6;
    std::vector<TileRow> const tiles = tile_rows(chip_for(chip_of_device(0), p.dtype), p.layout, p.gated());
    for (TileRow const& tile : tiles) {
      if (argc > 7 &&
          ("," + std::string(argv[7]) + ",").find("," + std::to_string(tile.row) + ",") == std::string::npos)
        continue;
      int const tall = static_cast<int>((p.m + tile.tile_m - 1) / tile.tile_m);
      for (int band : {4, 8}) {
        if (band > 4 && tall < band) continue;
        GemmLaunch const l = plain_launch(p, buffers, tile, band);
        buffers.out.poison();
        enqueue_gemm(l, nullptr);
        double const error =
            band > 4 ? 0
                     : error_of(p, buffers.x.data(), buffers.weight.data(),
                                p.epilogue == "bias_gelu" ? buffers.bias.data() : nullptr, buffers.out.data(), 8);
        tried.push_back({tile, band, error});
        methods.push_back({"", [l] { enqueue_gemm(l, nullptr); }, {}});
      }
    }
    measure(methods, rounds, std::clamp(static_cast<int>(0.3e-3 / estimate + 0.5), 1, 4), random);
    double best = 1e30;
    for (size_t i = 0; i < theirs; ++i) best = std::min(best, methods[i].quantile(0.5));
    std::printf("P %s %s %ld %ld %ld %d lt %.2f %s\n", p.workload.c_str(), std::string(name(p.layout)).c_str(), p.m,
                p.rank_n(), p.rank_k(), p.tp, best, theirs ? methods[0].name.c_str() : "-");
    for (size_t i = theirs; i < methods.size(); ++i) {
      Tried const& t = tried[i - theirs];
      std::printf("T %d %dx%d/%d %d %.2f %.4f %.1e\n", t.tile.row, t.tile.tile_m, t.tile.tile_n, t.tile.cluster, t.band,
                  methods[i].quantile(0.5), best / methods[i].quantile(0.5), t.error);
    }
    std::fflush(stdout);
  }
  delete cublas;
  return 0;
}

}  // namespace
}  // namespace flux::bench

int main(int argc, char** argv) {
  try {
    return flux::bench::sweep(argc, argv);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "gemm_sweep: %s\n", e.what());
    return 1;
  }
}
