// cuBLASLt played by loops, of bf16 alone. Enough of it for bench/gemm/cublaslt.cc.
#include <cublasLt.h>

#include <bit>
#include <cstdint>

namespace {

struct Layout {
  uint64_t rows, columns;
  int64_t stride;
};
struct Description {
  cublasOperation_t first = CUBLAS_OP_N;
};

float widen(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
uint16_t narrow(float x) {
  uint32_t const bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
template <class T, class Opaque>
T const& as(Opaque opaque) {
  return *reinterpret_cast<T const*>(opaque);
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return *handle = nullptr, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t, cudaDataType_t) {
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Description);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t to, cublasLtMatmulDescAttributes_t, void const* from,
                                              size_t) {
  reinterpret_cast<Description*>(to)->first = *static_cast<cublasOperation_t const*>(from);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t stride) {
  if (type != CUDA_R_16BF) return CUBLAS_STATUS_NOT_SUPPORTED;
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{rows, columns, stride});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  return *made = nullptr, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                    void const*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
// Three proposals; the second cannot be run.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  for (uint64_t i = 0; i < 3; ++i) results[i].algo.data[0] = i;
  return *count = 3, CUBLAS_STATUS_SUCCESS;
}
// Columns first: d [n, m] = first [n, k] · second [k, m].
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, void const*, void const* first,
                              cublasLtMatrixLayout_t first_layout, void const* second,
                              cublasLtMatrixLayout_t second_layout, void const*, void const*, cublasLtMatrixLayout_t,
                              void* d, cublasLtMatrixLayout_t d_layout, cublasLtMatmulAlgo_t const* algorithm, void*,
                              size_t, cudaStream_t) {
  if (algorithm->data[0] == 1) return CUBLAS_STATUS_NOT_SUPPORTED;
  auto const &a = as<Layout>(first_layout), &b = as<Layout>(second_layout), &out = as<Layout>(d_layout);
  bool const transposed = as<Description>(description).first == CUBLAS_OP_T;
  auto const *x = static_cast<uint16_t const*>(first), *y = static_cast<uint16_t const*>(second);
  for (uint64_t m = 0; m < out.columns; ++m)
    for (uint64_t n = 0; n < out.rows; ++n) {
      float sum = 0;
      for (uint64_t k = 0; k < b.rows; ++k)
        sum += widen(x[transposed ? n * a.stride + k : k * a.stride + n]) * widen(y[m * b.stride + k]);
      static_cast<uint16_t*>(d)[m * out.stride + n] = narrow(sum);
    }
  return CUBLAS_STATUS_SUCCESS;
}
}
