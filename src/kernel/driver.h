#pragma once
// The driver's functions by way of the runtime, so that nothing links to libcuda.
#include <cuda.h>
#include <cuda_runtime.h>

#include <string>

#include "flux/error.h"

namespace flux {

/// `driver_function<decltype(&cuX)>("cuX")`. Throws Error{kDevice} where the driver is too old to have it.
template <class Function>
Function driver_function(char const* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  if (cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result) != cudaSuccess ||
      result != cudaDriverEntryPointSuccess)
    throw Error(ErrorKind::kDevice,
                std::string("the CUDA driver has no ") + name + "; version 12.0 or later is needed");
  return reinterpret_cast<Function>(found);
}

}  // namespace flux
