#pragma once
// What the rows of a suite on this machine's GPU 0 have in common, and the machine.
#include "bench/gemm/problem.h"
#include "bench/gemm/timing.h"
#include "report/result_file.h"

namespace flux::bench {

/// The fields that name the problem.
ResultRow problem_row(GemmProblem const& problem);
/// Those, and the method's times.
ResultRow row_of(GemmProblem const& problem, GpuMethod const& method);

/// Throws Error{kUnsupported}, one sentence, where no GPU can be used.
void require_gpu(std::string const& suite);
MachineFacts gpu_facts();
/// As the driver names it: for read_sensors().
std::string gpu_bus_id();

}  // namespace flux::bench
