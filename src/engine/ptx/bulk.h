#pragma once
// What CUTLASS's instruction layer lacks for bulk copies.

namespace flux::ptx {

/// Waits until all bulk stores of this thread are performed: written, not only read from shared memory. Then orders
/// them before this thread's next ordinary writes, so that a word released after this call covers them.
__device__ inline void await_bulk_stores() {
  asm volatile("cp.async.bulk.wait_group 0;\n\tfence.proxy.async.global;" ::: "memory");
}

/// Orders what this thread acquired before the bulk loads it issues next.
__device__ inline void fence_bulk_loads() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

}  // namespace flux::ptx
