#include "bench/host_probe.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "bench/plain_gemm.h"
#include "bench/random.h"
#include "io/owned_tensor.h"

namespace flux::bench {

double HostProbe::median_us(std::function<void()> const& run) {
  constexpr int kRounds = 7;
  return measure(world_, {{"it", run}}, kRounds)["it"].median();
}

double HostProbe::gemm_us(int64_t m, int64_t n, int64_t k, bool) {
  OwnedTensor const x(DType::kF32, m, k), weight(DType::kF32, n, k), out(DType::kF32, m, n);
  Uniform{1}.fill(x.view(), 0, 0), Uniform{2}.fill(weight.view(), 0, 0);
  Linear linear;
  linear.weight = weight.view(), linear.out = out.view();
  PlainGemm gemm{Plan{}};
  return median_us([&] { gemm.run(x.view(), linear); });
}

double HostProbe::copy_here_us(int64_t bytes) {
  std::vector<std::byte> from(static_cast<size_t>(bytes), std::byte{1}), to(from.size());
  return median_us([&] { std::memcpy(to.data(), from.data(), from.size()); });
}

double HostProbe::copies_us(int count, int64_t bytes, bool, bool) {
  Link const link = world_.link();
  double const one =
      link.gbps > 0 ? link.latency_us + static_cast<double>(bytes) / link.gbps / 1e3 : copy_here_us(bytes);
  return count * one;
}

double HostProbe::kernel_us(int64_t bytes, bool load) { return copies_us(1, bytes, load, false); }

double HostProbe::round_trip_us() {
  return median_us([&] { world_.barrier(); });
}

Machine measure_host(World& world) {
  Machine kind;
  kind.name = "this host", kind.engine = EngineKind::kHost, kind.processors = 1, kind.products = 16;
  kind.source = fmt::format("measured by {} ranks at once, one worker each; the link is {}", world.size(),
                            world.link().gbps > 0 ? "declared" : "memory");
  kind.link.kind = LinkKind::kDeclared;
  HostProbe probe(world);
  Machine const mine = measured_machine(probe, kind);
  return parse_machine(world.all_gather(to_json(mine))[0], "rank 0's machine");  // one for all
}

}  // namespace flux::bench
