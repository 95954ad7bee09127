// A machine is found again from the times that it would show.
#include "plan/measured_machine.h"

#include <gtest/gtest.h>

#include "error_of.h"
#include "plan/tile_shapes.h"

namespace flux {
namespace {

/// Takes the times that a known machine would take.
class Known : public MachineProbe {
 public:
  explicit Known(Machine const& machine) : m(machine) {}
  double gemm_us(int64_t rows, int64_t n, int64_t k, bool busy) override {
    TileRow const shape = best_shape(rows, n, k, WeightLayout::kOutIn, false, m);
    return m.gemm_us + cycles(shape, rows, n, k, WeightLayout::kOutIn, m) / (busy ? m.sustained_mhz : m.clock_mhz);
  }
  double copy_here_us(int64_t bytes) override { return 3 + 2.0 * of(bytes) / m.memory_gbps / 1e3; }
  double copies_us(int count, int64_t bytes, bool pull, bool words) override {
    double const rate = pull ? m.link.pull_gbps : m.link.push_gbps;
    return m.link.start_us + count * (m.link.copy_us + (words ? m.link.word_us : 0) + of(bytes) / rate / 1e3);
  }
  double kernel_us(int64_t bytes, bool load) override {
    return 4 + of(bytes) / (load ? m.link.load_gbps : m.link.block_gbps) / 1e3;
  }
  double round_trip_us() override { return 2 * m.link.flag_us; }
  double collective_us(int64_t bytes) override {
    return library ? m.link.collective_us + of(bytes) / m.link.collective_gbps / 1e3 : 0;
  }
  static double of(int64_t bytes) { return static_cast<double>(bytes); }

  Machine m;
  bool library = true;
};

TEST(MeasuredMachine, IsTheOneThatWasMeasured) {
  for (char const* name : {"h200", "h200-pcie", "a100-sxm", "l20"}) {
    SCOPED_TRACE(name);
    Machine const truth = find_machine(name);
    Known probe(truth);
    Machine blank;
    blank.name = "measured", blank.source = "a test", blank.engine = truth.engine, blank.processors = truth.processors;
    blank.products = truth.products, blank.link.kind = truth.link.kind;
    Machine const found = measured_machine(probe, blank);
    EXPECT_NEAR(found.clock_mhz / truth.clock_mhz, 1, 0.06);
    EXPECT_NEAR(found.memory_gbps / truth.memory_gbps, 1, 0.02);
    for (auto rate : {&LinkRates::push_gbps, &LinkRates::pull_gbps, &LinkRates::block_gbps, &LinkRates::load_gbps,
                      &LinkRates::collective_gbps})
      EXPECT_NEAR(found.link.*rate / (truth.link.*rate), 1, 0.01);
    for (auto time : {&LinkRates::copy_us, &LinkRates::word_us, &LinkRates::start_us, &LinkRates::flag_us,
                      &LinkRates::collective_us})
      EXPECT_NEAR(found.link.*time, truth.link.*time, 0.01);
  }
}

TEST(MeasuredMachine, WithoutACollectiveLibraryCopiesStandForIt) {
  Known probe(find_machine("h200"));
  probe.library = false;
  Machine const found = measured_machine(probe, find_machine("h200"));
  EXPECT_NEAR(found.link.collective_gbps, probe.m.link.push_gbps, 1);
}

TEST(MeasuredMachine, TimesThatMakeNoSenseAreRefused) {
  class Broken : public Known {
    using Known::Known;
    double copies_us(int, int64_t, bool, bool) override { return 5; }
  } probe(find_machine("h200"));
  EXPECT_HAS(error_of(ErrorKind::kDevice, [&] { measured_machine(probe, find_machine("h200")); }), "measure again");
}

}  // namespace
}  // namespace flux
