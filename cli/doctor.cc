// flux doctor: what this machine has, what FLUX uses of it, and why not the rest.
#include <fmt/format.h>
#include <unistd.h>

#include <Eigen/Core>
#include <filesystem>
#include <thread>

#include "cli/command.h"
#include "cli/machine.h"
#include "flux/version.h"
#include "world/symmetric_memory.h"

namespace flux::cli {
namespace {

// A finding: what was looked for, what is there, and whether FLUX uses it.
struct Finding {
  std::string subject, found;
  bool used;
};

std::vector<Finding> examine() {
  std::vector<Finding> list;
  list.push_back({"cpu",
                  fmt::format("{}, {} cores, vector instructions: {}", cpu_name(), std::thread::hardware_concurrency(),
                              Eigen::SimdInstructionSetsInUse()),
                  true});
  list.push_back({"host engine", "Eigen, fp32 accumulation for bf16, fp16, fp32; fp64", true});
  int gpus = 0;
  while (std::filesystem::exists(fmt::format("/dev/nvidia{}", gpus))) ++gpus;
#ifdef FLUX_WITH_SM90
  std::string const kernels = "kernels for sm_90a are in this build";
#else
  std::string const kernels = "this build has no GPU kernels";
#endif
  list.push_back({"gpu",
                  gpus == 0 ? fmt::format("none visible (no /dev/nvidia0); {}; the host engine is used", kernels)
                            : fmt::format("{} visible; {}", gpus, kernels),
                  false});
  list.push_back({"world threads", "ranks as threads of one process, up to 16", true});
  list.push_back({"world processes",
                  fmt::format("shared memory files without a name, mapped through /proc; {:.1f} GiB available",
                              static_cast<double>(available_bytes()) / (1 << 30)),
                  true});
#ifdef FLUX_WITH_MPI
  list.push_back({"mpi", "in this build; ranks started by mpirun find each other through it", true});
#else
  list.push_back({"mpi", "not in this build (libopenmpi-dev was missing); use flux launch", false});
#endif
  list.push_back(
      {"link", "the host worlds have no real link; --link-gbps declares one, and every output says so", true});
  return list;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* doctor =
      app.add_subcommand("doctor", "Shows what this machine has, what FLUX uses of it, and why not the rest");
  doctor->add_flag("--json", *json, "Prints one JSON object instead of text");
  doctor->callback([json, &action] {
    action = [json] {
      auto const findings = examine();
      if (*json) {
        nlohmann::json out = {{"commit", commit()}};
        for (auto const& f : findings)
          out["findings"].push_back({{"subject", f.subject}, {"found", f.found}, {"used", f.used}});
        fmt::print("{}\n", out.dump(2));
        return kOk;
      }
      fmt::print("flux, commit {}\n", commit());
      for (auto const& f : findings) fmt::print("  [{}] {:<16} {}\n", f.used ? "x" : " ", f.subject, f.found);
      return kOk;
    };
  });
}

}  // namespace flux::cli
