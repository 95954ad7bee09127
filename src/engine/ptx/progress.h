#pragma once
// How one thread of a block tells another how far it has come.
#include <cstdint>

namespace flux::ptx {

/// A count in shared memory with one writer. What the writer did before it advanced, a waiter sees after, and a release
/// by the waiter at a wider scope covers it too.
struct Progress {
  uint32_t count;

  /// By the writer: `steps` steps are done.
  __device__ void advance_to(uint32_t steps) {
    asm volatile("st.release.cta.shared::cta.u32 [%0], %1;" ::"r"(address()), "r"(steps) : "memory");
  }
  __device__ void await(uint32_t steps) const {
    while (now() < steps) __nanosleep(32);
  }

 private:
  __device__ uint32_t now() const {
    uint32_t value;
    asm volatile("ld.acquire.cta.shared::cta.u32 %0, [%1];" : "=r"(value) : "r"(address()) : "memory");
    return value;
  }
  __device__ uint32_t address() const { return static_cast<uint32_t>(__cvta_generic_to_shared(&count)); }
};

}  // namespace flux::ptx
