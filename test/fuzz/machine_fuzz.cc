// Whatever the bytes are: parse_machine returns a machine that can be written, read again and simulated on, or throws
// Error{kInvalid}.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "flux/error.h"
#include "plan/simulate.h"

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) {
  using namespace flux;
  try {
    Machine const machine = parse_machine({reinterpret_cast<char const*>(data), size}, "input");
    if (parse_machine(to_json(machine), "again") != machine) std::abort();
    if (machine.engine == EngineKind::kHost) return 0;  // no 16-bit problem
    for (Op op : {Op::kAllGatherGemm, Op::kGemmReduceScatter, Op::kGemmAllReduce}) {
      Simulation const s = simulate({op, 100, 256, 512, 3}, {}, machine);
      if (!std::isfinite(s.total_us) || s.total_us <= 0) std::abort();
    }
  } catch (Error const& error) {
    if (error.kind() != ErrorKind::kInvalid) std::abort();
  }
  return 0;
}
