#pragma once
// Times of the host engine on this machine, for a Machine of it.
#include "bench/measure.h"
#include "plan/measured_machine.h"

namespace flux::bench {

/// Collective; the same on every rank. All ranks work at once, as they do in an operator, so that cores they share
/// count as shared. The link is the world's declared one; without one, rows go through memory.
class HostProbe : public MachineProbe {
 public:
  explicit HostProbe(World& world) : world_(world) {}
  double gemm_us(int64_t m, int64_t n, int64_t k, bool busy) override;
  double copy_here_us(int64_t bytes) override;
  double copies_us(int count, int64_t bytes, bool pull, bool words) override;
  double kernel_us(int64_t bytes, bool load) override;
  double round_trip_us() override;
  double collective_us(int64_t) override { return 0; }

 private:
  double median_us(std::function<void()> const& run);
  World& world_;
};

/// The host engine with one worker a rank, measured. Collective; the same on every rank.
Machine measure_host(World& world);

}  // namespace flux::bench
