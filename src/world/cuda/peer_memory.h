#pragma once
// GPU memory that other processes reach, in two ways, and host memory that both processes and GPUs reach.
#include <memory>

#include "world/symmetric_memory.h"

namespace flux {

/// Collective: a zeroed block a rank, on `device`, that all kernels and copies of ranks of its node reach.
std::shared_ptr<SymmetricMemory> share_by_vmm(Bootstrap& bootstrap, Nodes const& nodes, int device, int64_t bytes,
                                              double limit_seconds);
std::shared_ptr<SymmetricMemory> share_by_ipc(Bootstrap& bootstrap, Nodes const& nodes, int device, int64_t bytes,
                                              double limit_seconds);

/// Why this GPU and this system cannot, as a trial said; empty: they can.
std::string cannot_share_by_vmm(int device);
std::string cannot_share_by_ipc(int device);
/// The same of host memory, which GPU 0 is to reach.
std::string cannot_register();

/// Collective: shared memory of the host, registered with this rank's GPU. Its views are for the host (control blocks,
/// which have on_gpu() beside them), or for the GPU's kernels and copies.
enum class ViewedBy { kHost, kGpu };
std::shared_ptr<SymmetricMemory> share_registered(Bootstrap& bootstrap, Nodes const& nodes, int device, int64_t bytes,
                                                  ViewedBy viewed_by, double limit_seconds);

/// A copy or kernel was enqueued on this process's GPU that does not end: nothing of it is freed any more, because that
/// would wait for it.
void give_up_on_gpu();
bool gave_up_on_gpu();

}  // namespace flux
