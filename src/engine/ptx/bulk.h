#pragma once
// What CUTLASS's instruction layer lacks for bulk copies.
#include <cutlass/bfloat16.h>
#include <cutlass/half.h>

#include <cstdint>

namespace flux::ptx {

/// `bytes` bytes, a multiple of 16 as are the addresses, from shared memory to anywhere. Part of this thread's bulk
/// group.
__device__ inline void bulk_store(void* to, void const* shared, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))), "r"(bytes)
               : "memory");
}

/// The same, added to what is there, element by element.
__device__ inline void bulk_add(void* to, cutlass::bfloat16_t const* shared, int bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%0], [%1], %2;" ::"l"(to),
               "r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))), "r"(bytes)
               : "memory");
}
__device__ inline void bulk_add(void* to, cutlass::half_t const* shared, int bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%0], [%1], %2;" ::"l"(to),
               "r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))), "r"(bytes)
               : "memory");
}

/// Waits until this thread's bulk stores, but for those of the `kYounger` youngest groups, are performed: written, not
/// only read from shared memory. Then orders them before this thread's next ordinary writes, so that a word released
/// after this call, here or by a thread that synchronised with this one, covers them.
template <int kYounger>
__device__ void await_bulk_stores() {
  asm volatile("cp.async.bulk.wait_group %0;\n\tfence.proxy.async.global;" ::"n"(kYounger) : "memory");
}

/// Orders what this thread acquired before the bulk loads it issues next.
__device__ inline void fence_bulk_loads() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

}  // namespace flux::ptx
