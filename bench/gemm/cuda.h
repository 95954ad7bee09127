#pragma once
#include <cuda_runtime.h>

#include <string>

#include "flux/error.h"

namespace flux::bench {

inline void must(cudaError_t error) {
  if (error != cudaSuccess) throw Error(ErrorKind::kDevice, cudaGetErrorString(error));
}

/// Bytes on the current device.
class Buffer {
 public:
  explicit Buffer(int64_t bytes) : bytes_(bytes) { must(cudaMalloc(&data_, bytes)); }
  ~Buffer() { cudaFree(data_); }
  Buffer(Buffer const&) = delete;
  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  void poison() { must(cudaMemset(data_, 0xff, bytes_)); }

 private:
  void* data_ = nullptr;
  int64_t bytes_;
};

}  // namespace flux::bench
