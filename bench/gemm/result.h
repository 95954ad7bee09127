#pragma once
// The result file of a suite on this machine's GPU 0, problem after problem.
#include <functional>
#include <string>
#include <vector>

#include "bench/gemm/problem.h"
#include "bench/gemm/timing.h"
#include "report/result_file.h"

namespace flux::bench {

/// A row of what every method of a suite has: the problem and the method's times.
ResultRow row_of(GemmProblem const& problem, GpuMethod const& method);

/// Runs `run` on each problem, which adds its rows.
ResultFile run_all(std::string suite, std::vector<GemmProblem> const& problems,
                   std::function<void(GemmProblem const&, std::vector<ResultRow>&)> const& run,
                   std::function<void(int done, int all)> const& progress);

}  // namespace flux::bench
