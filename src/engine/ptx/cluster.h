#pragma once
// Barriers of other blocks of a cluster, by an address worked out once.
#include <cstdint>

namespace flux::ptx {

/// Where `block` of the cluster has what lies at `shared` here.
__device__ inline uint32_t cluster_address(void const* shared, uint32_t block) {
  uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(address)
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))), "r"(block));
  return address;
}

/// One arrival at the barrier there, by the cheapest instruction: it orders this thread's shared memory, no more.
__device__ inline void arrive(uint32_t cluster_address) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(cluster_address) : "memory");
}

}  // namespace flux::ptx
