// Copies and fills on the fake GPU.
#include <cuda_runtime.h>

#include <cstring>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu/fake/runtime.h"

namespace flux::test {
namespace {

// What the default stream copies and clears need not be there when the call returns, and here never is: it lands when
// somebody waits for that stream.
std::mutex landing;
std::vector<std::function<void()>> late;

void later(std::function<void()> act) {
  std::lock_guard lock(landing);
  late.push_back(std::move(act));
}

}  // namespace

void land() {
  std::lock_guard lock(landing);
  for (auto const& act : std::exchange(late, {})) act();
}

}  // namespace flux::test

using namespace flux::test;

extern "C" {

cudaError_t cudaMemcpy(void* to, void const* from, size_t bytes, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDeviceToHost) {
    land();
    std::memcpy(to, from, bytes);
  } else {
    auto const* const staged = static_cast<char const*>(from);
    later([to, bytes = std::vector<char>(staged, staged + bytes)] { std::memcpy(to, bytes.data(), bytes.size()); });
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, void const* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  if (fails("bit")) static_cast<char*>(to)[bytes / 2] ^= 1;
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, void const* from, size_t from_pitch, size_t width, size_t rows,
                              cudaMemcpyKind, cudaStream_t) {
  for (size_t i = 0; i < rows; ++i)
    std::memcpy(static_cast<char*>(to) + i * to_pitch, static_cast<char const*>(from) + i * from_pitch, width);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* at, int value, size_t bytes) {
  later([=] { std::memset(at, value, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t) {
  std::memset(at, value, bytes);
  return cudaSuccess;
}

}  // extern "C"
