#pragma once
// CUDA's status codes as errors.
#include <cuda_runtime.h>

#include <string>

#include "flux/error.h"

namespace flux {

inline void check_cuda(cudaError_t status, char const* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // this one was heard
  throw Error(ErrorKind::kDevice, std::string(what) + ": " + cudaGetErrorString(status));
}

}  // namespace flux
