#include "bench/gemm/cublaslt.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <algorithm>

#include "bench/gemm/cuda.h"
#include "bench/gemm/graph_timing.h"

namespace flux::bench {
namespace {

constexpr int kProposals = 64;
constexpr size_t kWorkspace = size_t{64} << 20;

void must(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw Error(ErrorKind::kDevice, "cuBLASLt: status " + std::to_string(status));
}

}  // namespace

struct CublasLt::State {
  void* library = nullptr;
  cublasLtHandle_t handle = nullptr;
  Buffer workspace{static_cast<int64_t>(kWorkspace)};
  float const one = 1, zero = 0;

  template <class F>
  F* function(char const* name, F*) {
    void* const found = dlsym(library, name);
    if (!found) throw Error(ErrorKind::kUnsupported, std::string("cuBLASLt has no ") + name);
    return reinterpret_cast<F*>(found);
  }
};
#define LT(name) state_->function(#name, &name)

CublasLt::CublasLt(std::string const& path) : state_(new State) {
  for (std::string const& name : {path, std::string("libcublasLt.so.13"), std::string("libcublasLt.so.12")})
    if (!state_->library && !name.empty()) state_->library = dlopen(name.c_str(), RTLD_NOW);
  if (!state_->library) throw Error(ErrorKind::kUnsupported, "cuBLASLt was not found; name it by --cublaslt");
  must(LT(cublasLtCreate)(&state_->handle));
}

CublasLt::~CublasLt() { LT(cublasLtDestroy)(state_->handle); }

std::vector<GpuMethod> CublasLt::best(GemmProblem const& p, void const* x, void const* weight, void* out, int count,
                                      std::mt19937& random, CUstream_st* stream) {
  std::vector<GpuMethod> methods;
  for (Proposal const& one : fastest(p, x, weight, out, count, random, stream))
    methods.push_back({one.name, [=, multiply = one.multiply] { multiply(x, weight, out); }, {}});
  return methods;
}

std::vector<CublasLt::Proposal> CublasLt::fastest(GemmProblem const& p, void const* x, void const* weight, void* out,
                                                  int count, std::mt19937& random, CUstream_st* stream,
                                                  uint32_t alignment) {
  // Columns first: outᵀ [n, m] = weight-as-[n, k] · xᵀ [k, m].
  cudaDataType_t const type = p.dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_16F;
  uint64_t const m = p.m, n = p.rank_n(), k = p.rank_k();
  bool const in_out = p.layout == WeightLayout::kInOut;
  cublasLtMatmulDesc_t operation;
  must(LT(cublasLtMatmulDescCreate)(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  cublasOperation_t const transposed = in_out ? CUBLAS_OP_N : CUBLAS_OP_T;
  must(LT(cublasLtMatmulDescSetAttribute)(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
  cublasLtMatrixLayout_t a, b, c;
  must(LT(cublasLtMatrixLayoutCreate)(&a, type, in_out ? n : k, in_out ? k : n, in_out ? n : k));
  must(LT(cublasLtMatrixLayoutCreate)(&b, type, k, m, k));
  must(LT(cublasLtMatrixLayoutCreate)(&c, type, n, m, n));
  cublasLtMatmulPreference_t preference;
  must(LT(cublasLtMatmulPreferenceCreate)(&preference));
  must(LT(cublasLtMatmulPreferenceSetAttribute)(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace,
                                                sizeof kWorkspace));
  for (auto const operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                             CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    must(LT(cublasLtMatmulPreferenceSetAttribute)(preference, operand, &alignment, sizeof alignment));
  std::vector<cublasLtMatmulHeuristicResult_t> proposals(kProposals);
  int returned = 0;
  must(LT(cublasLtMatmulAlgoGetHeuristic)(state_->handle, operation, a, b, c, c, preference, kProposals,
                                          proposals.data(), &returned));
  auto const multiply = LT(cublasLtMatmul);
  std::vector<Proposal> all;
  std::vector<GpuMethod> trials;
  for (int i = 0; i < returned; ++i) {
    auto run = [=, this, algorithm = proposals[i].algo](void const* x_at, void const* weight_at, void* out_at) {
      return multiply(state_->handle, operation, &state_->one, weight_at, a, x_at, b, &state_->zero, out_at, c, out_at,
                      c, &algorithm, state_->workspace.data(), kWorkspace, stream);
    };
    if (run(x, weight, out) != CUBLAS_STATUS_SUCCESS) continue;
    all.push_back(
        {"cublaslt " + std::to_string(i) + "/" + std::to_string(returned),
         [run](void const* x_at, void const* weight_at, void* out_at) { must(run(x_at, weight_at, out_at)); }});
    trials.push_back({std::to_string(all.size() - 1), [=] { must(run(x, weight, out)); }, {}});
  }
  must(cudaDeviceSynchronize());
  if (stream)
    measure_graphs(trials, 3, 1, random);
  else
    measure(trials, 3, 1, random);
  std::sort(trials.begin(), trials.end(),
            [](auto const& one, auto const& other) { return one.quantile(0.5) < other.quantile(0.5); });
  std::vector<Proposal> first;
  for (GpuMethod const& trial : trials)
    if (first.size() < static_cast<size_t>(count)) first.push_back(all[std::stoul(trial.name)]);
  return first;
}

}  // namespace flux::bench
