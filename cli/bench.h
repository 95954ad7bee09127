#pragma once
// What the suites of `flux bench` share, on the host and on GPUs.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/unit.h"
#include "cli/command.h"

namespace flux::cli {

struct BenchOptions {
  Common common;
  std::string suite = "host", workloads, out = "bench/results", resume, only, cublaslt, tier, dtype, mirror, variant;
  int tp = 0;  // 0: not said
  int64_t least_m = 0, most_m = INT64_MAX;
  std::string timing;
  bool cold = false;

  std::filesystem::path workload_file() const;
};

/// Suites of operators on GPUs, by name.
bool is_gpu_suite(std::string const& suite);

/// Whether some of the ranks are on one GPU, which serves their processes in turn: their times are those of waiting.
bool shares_a_gpu(World const& world);

/// Measures the units into a result file that grows, and prints it; the exit code. `tolerated(row)`: how far the row's
/// output may be from fp64. `world`: every rank of it calls this; rank 0 writes, and nothing where ranks share a GPU.
int run_suite(BenchOptions const& o, std::vector<bench::Unit> const& units, MachineFacts const& machine,
              std::string const& pci_bus_id, std::function<double(ResultRow const&)> const& tolerated,
              World* world = nullptr);

/// The per-rank GEMMs alone; operators with the other ranks mirrored; and by ranks that are processes, which this one
/// starts unless a launcher has. Throw Error{kUnsupported} in a build without kernels.
int bench_gemms(BenchOptions const& o);
int bench_mirrored(BenchOptions const& o);
int bench_processes(BenchOptions const& o);

}  // namespace flux::cli
