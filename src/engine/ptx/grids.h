#pragma once
// Kernels that follow each other in a stream and overlap: programmatic dependent launch. Both do nothing where the
// launch did not ask for it.

namespace flux::ptx {

/// The kernel behind may begin as soon as every block has said so, or has ended, and there is room for it.
__device__ inline void let_next_grid_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// Waits until the kernel before has ended, and sees all that it wrote.
__device__ inline void await_grid_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace flux::ptx
