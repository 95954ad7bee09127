#include "bench/gemm/result.h"

#include "bench/gemm/cuda.h"

namespace flux::bench {
MachineFacts gpu_facts() {
  cudaDeviceProp properties;
  must(cudaGetDeviceProperties(&properties, 0));
  int driver = 0, runtime = 0, devices = 0;
  must(cudaDriverGetVersion(&driver));
  must(cudaRuntimeGetVersion(&runtime));
  must(cudaGetDeviceCount(&devices));
  auto version = [](int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); };
  MachineFacts facts;
  facts.gpu = properties.name, facts.gpus = devices, facts.driver = "CUDA " + version(driver),
  facts.cuda = version(runtime);
  return facts;
}

void require_gpu(std::string const& suite) {
  int count = 0;
  cudaError_t const said = cudaGetDeviceCount(&count);
  if (said == cudaSuccess && count > 0) return;
  std::string const reason = said == cudaSuccess ? "none is visible" : cudaGetErrorString(said);
  throw Error(ErrorKind::kUnsupported,
              "suite " + suite + " runs on a GPU, and here: " + reason + "; --suite host runs on this machine's cores");
}

std::string gpu_bus_id() {
  char id[32] = {};
  must(cudaDeviceGetPCIBusId(id, sizeof id, 0));
  return id;
}

ResultRow problem_row(GemmProblem const& p) {
  ResultRow row;
  row.workload = p.workload, row.op = p.op, row.m = p.m, row.n = p.n, row.k = p.k, row.tp = p.tp;
  row.dtype = flux::name(p.dtype), row.weight = flux::name(p.layout), row.epilogue = p.epilogue;
  return row;
}

ResultRow row_of(GemmProblem const& p, GpuMethod const& method) {
  ResultRow row = problem_row(p);
  row.method = method.name;
  row.total_us = method.quantile(0.5), row.p10_us = method.quantile(0.1), row.p90_us = method.quantile(0.9);
  row.samples = static_cast<int64_t>(method.us.size());
  return row;
}

}  // namespace flux::bench
