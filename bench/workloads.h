#pragma once
// The problems that suites are made of, read from the workload file that ships with the project.
#include <filesystem>
#include <string>
#include <vector>

#include "bench/case.h"

namespace flux::bench {

/// One line of the file, for one m, one tp and one dtype.
struct Workload {
  std::string name, why, epilogue;
  Problem problem;
  int tp = 1;
  std::vector<std::string> plans = {};  ///< what to force, beside the plan's own choice: of ablations
};

/// The file that was installed or lies in the source tree.
std::filesystem::path workload_file();

/// All workloads of `suite` (the file's tier) in the order of the file. Throws `Error{kInvalid}`, one sentence: not
/// JSON, a field missing or of the wrong type, no such suite (naming those there are).
std::vector<Workload> read_workloads(std::filesystem::path const& file, std::string const& suite);

}  // namespace flux::bench
