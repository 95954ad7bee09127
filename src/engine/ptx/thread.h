#pragma once
// Which thread this is, in a way that keeps the compiler from working out ahead what depends on it.

namespace flux::ptx {

/// threadIdx.x, read here and now. What is computed from the usual one does not change from tile to tile, so it would
/// be computed once and kept in registers through a main loop that needs all of them.
__device__ inline int thread_now() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

}  // namespace flux::ptx
