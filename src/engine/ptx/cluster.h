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

/// The same, and whoever acquires it sees what this thread wrote before anywhere in the cluster.
__device__ inline void arrive_releasing(uint32_t cluster_address) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(cluster_address) : "memory");
}

/// Waits for a phase that threads of other blocks complete by arrive_releasing().
__device__ inline void await_cluster(void const* barrier, uint32_t phase) {
  asm volatile(
      "{\n\t.reg .pred done;\n"
      "again:\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      "\t@!done bra again;\n\t}" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(barrier))),
      "r"(phase)
      : "memory");
}

/// Into shared memory of any block of the cluster, at a multiple of 16 bytes.
__device__ inline void store(uint32_t cluster_address, float4 x) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(cluster_address), "f"(x.x), "f"(x.y), "f"(x.z),
               "f"(x.w)
               : "memory");
}

}  // namespace flux::ptx
