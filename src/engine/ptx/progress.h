#pragma once
// How one thread of a block tells another how far it has come.
#include <cstdint>

namespace flux::ptx {

/// A count in shared memory with one writer. What the writer did before it advanced, a waiter sees after, and a release
/// by the waiter at a wider scope covers it too. Both sides are atomic operations, plain loads and stores would do: so
/// race checkers know that they are meant to meet.
struct Progress {
  uint32_t count;

  /// By the writer: one step more is done.
  __device__ void advance() {
    asm volatile("red.release.cta.shared::cta.add.u32 [%0], 1;" ::"r"(address()) : "memory");
  }
  __device__ void await(uint32_t steps) {
    while (now() < steps) __nanosleep(32);
  }

 private:
  __device__ uint32_t now() {
    uint32_t value;
    asm volatile("atom.acquire.cta.shared::cta.or.b32 %0, [%1], 0;" : "=r"(value) : "r"(address()) : "memory");
    return value;
  }
  __device__ uint32_t address() const { return static_cast<uint32_t>(__cvta_generic_to_shared(&count)); }
};

}  // namespace flux::ptx
