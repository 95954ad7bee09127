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
  std::string suite = "host", workloads, out = "bench/results", resume, only, cublaslt, tier, mirror, variant;
  int tp = 8;
  int64_t least_m = 0, most_m = INT64_MAX;
  std::string timing;
  bool cold = false;

  std::filesystem::path workload_file() const;
};

/// Suites of operators on one GPU and its mirror, by name.
bool is_gpu_suite(std::string const& suite);

/// Measures the units into a result file that grows, and prints it; the exit code. `tolerated(row)`: how far the row's
/// output may be from fp64.
int run_suite(BenchOptions const& o, std::vector<bench::Unit> const& units, MachineFacts const& machine,
              std::string const& pci_bus_id, std::function<double(ResultRow const&)> const& tolerated);

/// The per-rank GEMMs alone; and operators with the other ranks mirrored. Throw Error{kUnsupported} in a build without
/// kernels.
int bench_gemms(BenchOptions const& o);
int bench_mirrored(BenchOptions const& o);

}  // namespace flux::cli
