#include "plan/choose_tile.h"

#include "engine/sm80/choose.h"
#include "engine/sm90/choose.h"

namespace flux {

Chip chip_for(Chip chip, DType dtype) {
  if (size_of(dtype) > 1) return chip;
  if (dtype == DType::kF8 && !chip.fp8)
    throw Error(ErrorKind::kUnsupported,
                "fp8 needs a GPU of compute capability 8.9 or later; on this one use int8, bf16 or fp16");
  chip.engine = EngineKind::kSm80;
  return chip;
}

std::vector<TileRow> tile_rows(Chip const& chip, WeightLayout layout, bool gated) {
  std::vector<TileRow> rows;
  if (chip.engine == EngineKind::kSm80) {
    for (int row = 0; row < sm80::kConfigs; ++row)
      if (sm80::kTable[row].shared_bytes() <= chip.shared_bytes) rows.push_back(sm80::tile_row(row));
  } else {
    for (int row = 0; row < sm90::kConfigs; ++row)
      if (!gated || sm90::kTable[row].gateable(layout)) rows.push_back(sm90::tile_row(row));
  }
  return rows;
}

double cost(TileRow const& tile, int64_t m, int64_t n, int64_t k, WeightLayout layout, Chip const& chip) {
  if (tile.engine == EngineKind::kSm80) return sm80::cost(tile.row, m, n, k, chip);
  return sm90::cost(sm90::kTable[tile.row], m, n, k, layout, chip.processors);
}

std::optional<Choice> choose_tile(int tile_m, int tile_n, TiledRows m, int64_t n, int64_t k, WeightLayout layout,
                                  bool gated, Chip const& chip) {
  constexpr double kUnhidden = 2;  // what cannot hide weighs more than what may
  std::optional<Choice> best;
  for (TileRow const& tile : tile_rows(chip, layout, gated)) {
    if (tile_m > 0 && (tile.tile_m != tile_m || tile.tile_n != tile_n)) continue;
    double c = cost(tile, m.rows, n, k, layout, chip);
    if (m.again > 0) c += kUnhidden * cost(tile, m.again, n, k, layout, chip);
    if (!best || c < best->cost) best = Choice{tile, Choice{}.band, c};
  }
  return best;
}

std::string tile_names(Chip const& chip, WeightLayout layout, bool gated) {
  std::string names;
  for (TileRow const& tile : tile_rows(chip, layout, gated)) {
    std::string const name = " " + std::to_string(tile.tile_m) + "x" + std::to_string(tile.tile_n);
    if (!names.ends_with(name)) names += name;
  }
  return names;
}

}  // namespace flux
