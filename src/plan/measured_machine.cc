#include "plan/measured_machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "flux/error.h"
#include "plan/tile_shapes.h"

namespace flux {
namespace {

// A line through two points: what anything costs before its first byte, and its rate.
struct Line {
  double before_us, gbps;
};

Line line(std::string_view what, double small_bytes, double small_us, double large_bytes, double large_us) {
  double const more = large_us - small_us;
  if (!(small_us >= 0) || !(more > 0))
    throw Error(ErrorKind::kDevice, fmt::format("{}: {:.0f} bytes took {:.2f} us and {:.0f} bytes {:.2f} us; measure "
                                                "again while nothing else runs",
                                                what, small_bytes, small_us, large_bytes, large_us));
  double const gbps = (large_bytes - small_bytes) / more / 1e3;
  return {std::max(0.0, small_us - small_bytes / gbps / 1e3), gbps};
}

}  // namespace

Machine measured_machine(MachineProbe& probe, Machine m) {
  constexpr int64_t kSmall = 1 << 20, kLarge = 64 << 20;
  bool const host = m.engine == EngineKind::kHost;
  // Host memory and cores are slower by orders of magnitude: smaller pieces measure the same there.
  int64_t const small = host ? kSmall / 16 : kSmall, large = host ? kLarge / 16 : kLarge;
  auto of = [](int64_t bytes) { return static_cast<double>(bytes); };

  Line const here = line("copies here", of(small), probe.copy_here_us(small), of(large), probe.copy_here_us(large));
  m.memory_gbps = 2 * here.gbps;  // read and written

  int64_t const rows = host ? 256 : 4096, few = host ? 32 : 256, columns = host ? 512 : 6144,
                depth = host ? 1024 : 8192;
  m.clock_mhz = m.sustained_mhz = 1000;
  auto cycles_of = [&](int64_t m_rows) {
    TileRow const shape = best_shape(m_rows, columns, depth, WeightLayout::kOutIn, false, m);
    return cycles(shape, m_rows, columns, depth, WeightLayout::kOutIn, m);
  };
  double const short_us = probe.gemm_us(few, columns, depth, false),
               long_us = probe.gemm_us(rows, columns, depth, false);
  if (!(long_us > short_us))
    throw Error(ErrorKind::kDevice, fmt::format("a GEMM of {} rows took {:.1f} us and one of {} rows {:.1f}; measure "
                                                "again while nothing else runs",
                                                few, short_us, rows, long_us));
  m.clock_mhz = (cycles_of(rows) - cycles_of(few)) / (long_us - short_us);
  m.gemm_us = std::clamp(short_us - cycles_of(few) / m.clock_mhz, 0.0, 100.0);
  double const busy_us = std::max(probe.gemm_us(rows, columns, depth, true), long_us);
  m.sustained_mhz = std::min(m.clock_mhz, m.clock_mhz * long_us / busy_us);
  if (host) m.library_speed = 1;  // of a GPU's library nothing is measured

  LinkRates& l = m.link;
  constexpr int kCopies = 7;
  auto copies = [&](bool pull) {
    return line("copies to a peer", of(small), probe.copies_us(1, small, pull, false), of(large),
                probe.copies_us(1, large, pull, false));
  };
  Line const push = copies(false);
  l.push_gbps = push.gbps, l.pull_gbps = copies(true).gbps;
  double const several = probe.copies_us(kCopies, small, false, false);
  l.copy_us = std::max(0.0, (several - kCopies * of(small) / l.push_gbps / 1e3 - push.before_us) / (kCopies - 1));
  l.start_us = std::max(0.0, push.before_us - l.copy_us);
  l.word_us = std::clamp((probe.copies_us(kCopies, small, false, true) - several) / kCopies, 0.0, 100.0);
  auto kernel = [&](bool load) {
    return line("stores and loads", of(small), probe.kernel_us(small, load), of(large), probe.kernel_us(large, load))
        .gbps;
  };
  l.block_gbps = kernel(false), l.load_gbps = kernel(true);
  // Tiles are stored in rows of a few hundred bytes, which PCIe carries at some 21 GB/s where blocks reach 37.
  constexpr double kTilesAcrossPcie = 21.0 / 37;
  l.store_gbps = l.block_gbps * (across_pcie(l.kind) ? kTilesAcrossPcie : 1);
  l.flag_us = probe.round_trip_us() / 2;
  double const none_small = probe.collective_us(small), none_large = probe.collective_us(large);
  l.collective_gbps = l.push_gbps, l.collective_us = l.start_us + kCopies * l.copy_us;
  if (none_small > 0) {
    Line const all = line("the collective library", of(small), none_small, of(large), none_large);
    l.collective_gbps = all.gbps, l.collective_us = all.before_us;
  }
  return parse_machine(to_json(m), m.name);  // a machine that a file can say
}

}  // namespace flux
