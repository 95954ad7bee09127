#include "bench/gemm/result.h"

#include "bench/gemm/cuda.h"
#include "flux/version.h"

namespace flux::bench {
namespace {

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

}  // namespace

ResultRow row_of(GemmProblem const& p, GpuMethod const& method) {
  ResultRow row;
  row.workload = p.workload, row.op = p.op, row.m = p.m, row.n = p.n, row.k = p.k, row.tp = p.tp;
  row.dtype = flux::name(p.dtype), row.weight = flux::name(p.layout), row.epilogue = p.epilogue;
  row.method = method.name;
  row.total_us = method.quantile(0.5), row.p10_us = method.quantile(0.1), row.p90_us = method.quantile(0.9);
  row.samples = static_cast<int64_t>(method.us.size());
  return row;
}

ResultFile run_all(std::string suite, std::vector<GemmProblem> const& problems,
                   std::function<void(GemmProblem const&, std::vector<ResultRow>&)> const& run,
                   std::function<void(int done, int all)> const& progress) {
  ResultFile file;
  file.suite = std::move(suite), file.date = utc_now(), file.commit = commit(), file.machine = gpu_facts();
  int done = 0;
  for (GemmProblem const& p : problems) {
    run(p, file.rows);
    progress(++done, static_cast<int>(problems.size()));
  }
  return file;
}

}  // namespace flux::bench
