#pragma once
// Matrices on the GPU for the tests: filled, read back and compared on the host.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "engine/host/element.h"
#include "engine/sm80/config.h"
#include "engine/sm90/config.h"
#include "flux/tensor.h"
#include "world/cuda/copy_stream.h"

namespace flux::test {

inline void must(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

/// The tiles of both engines, one behind the other: a GPU of compute capability 9.0 runs them all.
inline constexpr int kGpuTiles = sm90::kConfigs + sm80::kConfigs;
inline TileRow gpu_tile(int row) {
  return row < sm90::kConfigs ? sm90::tile_row(row) : sm80::tile_row(row - sm90::kConfigs);
}

/// What the default stream copies and clears may still be under way when it returns, and no other stream waits for it.
inline void arrive() { must(cudaStreamSynchronize(nullptr)); }

/// Tests that run where a GPU of compute capability 9.0 is, and are skipped elsewhere.
class OnHopper : public testing::Test {
 protected:
  void SetUp() override {
    int major = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess || major != 9)
      GTEST_SKIP() << "needs a GPU of compute capability 9.0";
  }
};

/// A stream as operators have them for copies: it is used again by the next one.
class OwnStream {
 public:
  operator cudaStream_t() const { return stream_.stream(); }
  void settle() const { must(cudaStreamSynchronize(*this)); }

 private:
  CopyStream stream_;
};

/// bf16 or fp16 bits of a number, and back.
inline uint16_t narrow(float x, DType dtype) {
  return dtype == DType::kBF16 ? std::bit_cast<uint16_t>(Eigen::bfloat16(x)) : std::bit_cast<uint16_t>(Eigen::half(x));
}
inline float widen(uint16_t bits, DType dtype) {
  return dtype == DType::kBF16 ? static_cast<float>(std::bit_cast<Eigen::bfloat16>(bits))
                               : static_cast<float>(std::bit_cast<Eigen::half>(bits));
}

/// Bytes on the current device, zeroed.
class DeviceBytes {
 public:
  explicit DeviceBytes(int64_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    must(cudaMallocAsync(&data_, bytes, nullptr));
    must(cudaMemset(data_, 0, bytes));
    arrive();
  }
  // cudaFree would wait for the kernels of all ranks on this GPU.
  ~DeviceBytes() {
    if (data_) cudaFreeAsync(data_, nullptr);
  }
  DeviceBytes(DeviceBytes&& other) noexcept : data_(other.data_), bytes_(other.bytes_) { other.data_ = nullptr; }
  DeviceBytes(DeviceBytes const&) = delete;
  template <class T = void>
  T* as() const {
    return static_cast<T*>(data_);
  }
  int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_;
};

using Reference = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A contiguous matrix on the device and what it holds, as floats, on the host.
struct DeviceMatrix {
  DType dtype;
  int64_t rows, columns;
  DeviceBytes bytes;
  std::vector<float> host;

  DeviceMatrix(DType dtype, int64_t rows, int64_t columns)
      : dtype(dtype), rows(rows), columns(columns), bytes(rows * columns * size_of(dtype)), host(rows * columns) {}

  void upload() {
    std::vector<std::byte> raw(bytes.bytes());
    host::narrow(host.data(), raw.data(), dtype, rows * columns);
    host::widen(raw.data(), dtype, host.data(), rows * columns);
    if (!raw.empty()) must(cudaMemcpy(bytes.as<void>(), raw.data(), raw.size(), cudaMemcpyHostToDevice));
    arrive();
  }
  void download() {
    std::vector<std::byte> raw(bytes.bytes());
    if (!raw.empty()) must(cudaMemcpy(raw.data(), bytes.as<void>(), raw.size(), cudaMemcpyDeviceToHost));
    host::widen(raw.data(), dtype, host.data(), rows * columns);
  }
  /// Small whole numbers, whose sums are exact in any order, or numbers in (-1, 1), of int8 in (-127, 127).
  void fill(std::mt19937& random, bool whole) {
    float const span = dtype == DType::kI8 ? 127 : 1;
    for (float& x : host)
      x = whole ? static_cast<float>(static_cast<int>(random() % 3) - 1)
                : span * (static_cast<float>(random() % 65536) / 32768.f - 1.f);
    upload();
  }
  Reference values() const {
    using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    return Eigen::Map<Floats const>(host.data(), rows, columns).cast<double>();
  }
  void poison() {
    must(cudaMemset(bytes.as<void>(), 0xff, bytes.bytes()));
    arrive();
  }
  Tensor tensor() const { return matrix(bytes.as<void>(), dtype, rows, columns); }
};

/// ‖out − ref‖ / ‖ref‖; NaN in `out` gives NaN. A reference of zeros allows no difference.
inline double relative_error(Reference const& out, Reference const& reference) {
  double const difference = (out - reference).norm();
  return difference == 0 ? 0 : difference / reference.norm();
}

}  // namespace flux::test
