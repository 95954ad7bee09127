#pragma once
// What runs in a process of its own with one bug planted or none.
#include <functional>
#include <string>
#include <vector>

namespace flux::test {

/// How such a process ends. ThreadSanitizer's own exit code is set by whoever starts it.
enum Outcome { kClean = 0, kWrong = 1, kError = 3, kRace = 66 };

struct Workload {
  std::string name;
  /// Returns an empty string, or what was wrong. Throws `Error` where the world ended with one.
  std::function<std::string()> run;
};

std::vector<Workload> const& workloads();

/// Runs the one of that name and says on stderr what went wrong.
Outcome run_workload(std::string const& name);

}  // namespace flux::test
