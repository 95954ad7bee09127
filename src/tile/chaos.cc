#if defined(FLUX_CHAOS)
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tile/signal.h"

namespace flux {
namespace {

int named_by_environment() {
  char const* number = std::getenv("FLUX_BUG");
  return number ? std::atoi(number) : 0;
}

// Relaxed, and no locks here or below: the hazards must not order what the code under test leaves unordered.
std::atomic<int> current{named_by_environment()};

uint32_t next_random() {
  thread_local uint32_t state = static_cast<uint32_t>(now_ns()) | 1;  // differs from thread to thread and run to run
  state ^= state << 13, state ^= state >> 17, state ^= state << 5;
  return state;
}

}  // namespace

void plant(Bug bug) { current.store(static_cast<int>(bug), std::memory_order_relaxed); }

bool is_planted(Bug bug) { return current.load(std::memory_order_relaxed) == static_cast<int>(bug); }

void jitter() {
  uint32_t const random = next_random();
  if (random % 4 == 0) std::this_thread::yield();
  if (random % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random / 64 % 100));
}

}  // namespace flux
#endif
