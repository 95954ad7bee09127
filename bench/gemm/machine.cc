#include "bench/gemm/machine.h"

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

}  // namespace flux::bench
