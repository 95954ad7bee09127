#include "plan/tile_shapes.h"

#include <algorithm>
#include <cmath>

namespace flux {
namespace {

double up(int64_t a, int64_t b) { return static_cast<double>((a + b - 1) / b); }

// The host engine multiplies in blocks that spare it the packing of operands.
constexpr TileRow host_tile(int tile_m, int tile_n) { return {EngineKind::kHost, -1, tile_m, tile_n, 1}; }
constexpr TileRow kHost[] = {host_tile(256, 512), host_tile(128, 512), host_tile(64, 512), host_tile(256, 256)};

/// Of memory, a cycle: what a kernel reaches of its rate.
double memory_bytes(Machine const& machine) {
  constexpr double kReached = 0.85;
  return machine.memory_gbps * kReached / machine.clock_mhz * 1e3;
}

/// Both operands once.
double memory_cycles(int64_t m, int64_t n, int64_t k, Machine const& machine) {
  return 2.0 * static_cast<double>(m + n) * static_cast<double>(k) / memory_bytes(machine);
}

double host_cost(TileRow const& s, int64_t m, int64_t n, int64_t k, Machine const& machine) {
  constexpr double kTile = 2500;    // prologue and epilogue of a tile, in cycles
  constexpr double kNarrow = 0.07;  // tiles below 128 x 256 read more operand bytes for each product
  double const area = double{1} * s.tile_m * s.tile_n;
  double tile = up(k, 32) * 32 * area / machine.products;
  tile *= 1 + kNarrow * std::max(0.0, std::log2(128.0 * 256.0 / area));
  tile += kTile;
  double const waves = std::ceil(up(m, s.tile_m) * up(n, s.tile_n) / machine.processors);
  return std::max(waves * tile, memory_cycles(m, n, k, machine) + kTile);
}

}  // namespace

Chip chip_of(Machine const& machine) {
  return {machine.engine,
          machine.processors,
          machine.shared_bytes,
          machine.products,
          memory_bytes(machine) / machine.processors,
          machine.fp8};
}

Machine machine_for(Machine const& machine, DType dtype) {
  if (machine.engine == EngineKind::kHost || size_of(dtype) > 1) return machine;
  Machine m = machine;
  m.engine = chip_for(chip_of(machine), dtype).engine;
  // By mma.sync a chip that has WGMMA reaches half of its rate, and multiplies fp8 as fp16; libraries do neither there.
  double const slower = dtype == DType::kF8 ? 4 : 2;
  if (m.engine != machine.engine) m.products /= slower, m.library_speed *= slower;
  return m;
}

std::vector<TileRow> tile_shapes(Machine const& machine, WeightLayout layout, bool gated) {
  if (machine.engine == EngineKind::kHost) return {std::begin(kHost), std::end(kHost)};
  return tile_rows(chip_of(machine), layout, gated);
}

int workers(TileRow const& shape, Machine const& machine) { return std::max(machine.processors / shape.cluster, 1); }

double cycles(TileRow const& shape, int64_t m, int64_t n, int64_t k, WeightLayout layout, Machine const& machine) {
  if (m == 0 || n == 0 || k == 0) return 0;
  if (shape.engine == EngineKind::kHost) return host_cost(shape, m, n, k, machine);
  double const memory = memory_cycles(m, n, k, machine);  // the Hopper table's cost knows the memory of one chip
  return std::max(memory, cost(shape, m, n, k, layout, chip_of(machine)));
}

double tile_cycles(TileRow const& shape, int64_t m, int64_t n, int64_t k, WeightLayout layout, Machine const& machine) {
  double const waves = std::ceil(up(m, shape.tile_m) * up(n, shape.tile_n) / workers(shape, machine));
  return waves == 0 ? 0 : cycles(shape, m, n, k, layout, machine) / waves;
}

double read_again(double bytes, Machine const& machine) {
  double const half = machine.l2_bytes / 2;
  return half > 0 ? std::clamp((bytes - half) / half, 0.0, 1.0) : 1;
}

TileRow best_shape(int64_t m, int64_t n, int64_t k, WeightLayout layout, bool gated, Machine const& machine) {
  TileRow best;
  double least = 0;
  for (TileRow const& shape : tile_shapes(machine, layout, gated)) {
    double const c = cycles(shape, m, n, k, layout, machine);
    if (best.tile_m == 0 || c < least) best = shape, least = c;
  }
  return best;
}

TileRow usual_shape(TiledRows m, int64_t n, int64_t k, WeightLayout layout, bool gated, Machine const& machine) {
  if (machine.engine == EngineKind::kHost) return best_shape(m.rows, n, k, layout, gated, machine);
  return choose_tile(m, n, k, layout, gated, chip_of(machine)).tile;
}

std::optional<TileRow> named_shape(int tile_m, int tile_n, TiledRows m, int64_t n, int64_t k, WeightLayout layout,
                                   bool gated, Machine const& machine) {
  if (machine.engine != EngineKind::kHost) {
    auto const choice = choose_tile(tile_m, tile_n, m, n, k, layout, gated, chip_of(machine));
    return choice ? std::optional(choice->tile) : std::nullopt;
  }
  for (TileRow const& shape : tile_shapes(machine, layout, gated))
    if (shape.tile_m == tile_m && shape.tile_n == tile_n) return shape;
  return std::nullopt;
}

double busy(double gemm_us, double beside_us) {
  constexpr double kGapUs = 15;
  return gemm_us <= 0 ? 0 : gemm_us / (gemm_us + beside_us + kGapUs);
}

double clock_mhz(Machine const& machine, double busy) {
  constexpr double kEnough = 0.6;
  double const short_of = std::clamp((busy - kEnough) / (1 - kEnough), 0.0, 1.0);
  return machine.clock_mhz - (machine.clock_mhz - machine.sustained_mhz) * short_of;
}

}  // namespace flux
