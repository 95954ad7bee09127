#pragma once
// The driver's status codes as errors.
#include <string>

#include "kernel/driver.h"

namespace flux {

inline void check_driver(CUresult result, char const* what) {
  if (result == CUDA_SUCCESS) return;
  static auto const name_of = driver_function<decltype(&cuGetErrorName)>("cuGetErrorName");
  char const* name = nullptr;
  if (name_of(result, &name) != CUDA_SUCCESS || !name) name = "unknown";
  throw Error(ErrorKind::kDevice,
              std::string(what) + ": CUDA driver error " + std::to_string(result) + " (" + name + ")");
}

}  // namespace flux
