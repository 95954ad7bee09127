#include "op/gpu/tiles.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/gemm.h"
#include "op/checks.h"

namespace flux {

Tiles choose_tiles(Plan const& plan, TiledRows m, int64_t n, int64_t k, WeightLayout layout, bool gated, DType dtype,
                   Chip const& of_gpu) {
  Chip const chip = chip_for(of_gpu, dtype);
  auto const choice = choose_tile(plan.block_m, plan.block_n, m, n, depth_of(k, dtype), layout, gated, chip);
  if (!choice)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("tile={}x{} is none of this GPU's{}: auto{}", plan.block_m, plan.block_n,
                            gated ? " for a gated layer" : "", tile_names(chip, layout, gated)));
  return {choice->tile, plan.band > 0 ? plan.band : choice->band, plan.block_m > 0 ? 0 : choice->cost};
}

int blocks_to_copy(Plan const& plan, Carried what, int64_t piece_bytes, bool around, Gpu const& gpu) {
  if (gpu.through_host()) {
    require(!around, "ranks meet in host memory here, where a ring has no use; use path=direct and route=auto");
    require(plan.copy_blocks <= 0, "copies={}: copy engines carry what goes through host memory; use copies=auto",
            plan.copy_blocks);
    return 0;
  }
  require(!around || plan.copy_blocks != 0, "around a ring blocks of the GPU relay; use copies=auto or a number");
  if (plan.copy_blocks == kChosenCopies && !gpu.whole()) return around ? 1 : 0;
  return blocks_to_copy(plan, what, piece_bytes, around);
}

int blocks_beside(int copying, Gpu const& gpu) {
  return (gpu.through_host() ? 1 : copying) + (gpu.spans_nodes() ? kRailBlocks : 0);
}

int gemm_processors(Plan const& plan, Gpu const& gpu, int copying) {
  int const free = std::max(plan.spare, copying * (gpu.mirrored() ? 2 : 1));  // in a mirror those of the others too
  if (gpu.whole() && free == 0) return 0;
  return std::max((gpu.processors() - free) / 2 * 2, 2);  // whole clusters
}

void prepare_tiles(Plan const& plan, DType dtype, Gpu const& gpu) {
  Chip const chip = chip_for(gpu.chip(), dtype);
  for (WeightLayout layout : {WeightLayout::kOutIn, WeightLayout::kInOut})
    for (TileRow const& tile : tile_rows(chip, layout, false))
      if ((plan.block_m == 0 || (tile.tile_m == plan.block_m && tile.tile_n == plan.block_n)) &&
          (layout == WeightLayout::kOutIn || size_of(dtype) > 1))
        prepare_gemm(tile, dtype, layout);
}

void require_on_gpu(std::string_view what, Tensor const& t) {
  if (!t || t.rows * t.columns == 0) return;
  if (size_of(t.dtype) > 2)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{} is {}; GPU engines multiply bf16, fp16, int8 and fp8", what, name(t.dtype)));
  int64_t const unit = 16 / size_of(t.dtype);
  if (t.columns % unit != 0 || (t.rows > 1 && t.stride % unit != 0) || reinterpret_cast<uintptr_t>(t.data) % 16 != 0)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{} is [{}, {}] with rows {} elements apart; on GPUs columns and distance are multiples of "
                            "{} elements and addresses of 16 bytes, so the nearest width is {}",
                            what, t.rows, t.columns, t.stride, unit, (t.columns + unit - 1) / unit * unit));
}

void require_on_gpu(Linear const& l) {
  require_on_gpu("the weight", l.weight), require_on_gpu("the output", l.out), require_on_gpu("the bias", l.bias);
  require_on_gpu(l.scales);
  require(!l.up, "on GPUs gate and up are one weight, gate first; two were given");
}

void require_on_gpu(Scales const& scales) {
  if (reinterpret_cast<uintptr_t>(scales.columns.data) % 16 != 0)
    throw Error(ErrorKind::kUnsupported, "scales of columns start at an address that is no multiple of 16 bytes");
}

}  // namespace flux
