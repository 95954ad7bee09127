// Whatever the bytes are: PlanCache::parse returns plans that are written and read again alike, or throws
// Error{kInvalid}.
#include <cstdint>
#include <cstdlib>

#include "flux/error.h"
#include "plan/plan_cache.h"

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) {
  using namespace flux;
  try {
    PlanCache const cache = PlanCache::parse({reinterpret_cast<char const*>(data), size}, "input");
    PlanCache const again = PlanCache::parse(cache.text(), "again");
    if (again.plans() != cache.plans() || again.text() != cache.text()) std::abort();
  } catch (Error const& error) {
    if (error.kind() != ErrorKind::kInvalid) std::abort();
  }
  return 0;
}
