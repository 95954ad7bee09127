// flux doctor: what this machine has, what FLUX uses of it, and why not the rest.
#include <fmt/format.h>
#include <unistd.h>

#include <Eigen/Core>
#include <algorithm>
#include <thread>

#include "bench/host_probe.h"
#ifdef FLUX_WITH_SM90
#include "bench/gemm/gpu_probe.h"
#endif
#include "cli/command.h"
#include "cli/machine.h"
#include "flux/version.h"
#include "io/atomic_file.h"
#include "world/gpu_report.h"
#include "world/rails.h"
#include "world/ring_order.h"
#include "world/symmetric_memory.h"

namespace flux::cli {
namespace {

// A finding: what was looked for, what is there, and whether FLUX uses it.
struct Finding {
  std::string subject, found;
  bool used;
};

constexpr double kTrialSeconds = 10;  // of a link, which takes a millisecond

std::string sharing_of(GpuFacts const& gpu) {
  if (gpu.no_vmm.empty()) return "processes share its memory by the driver's virtual memory";
  if (gpu.no_ipc.empty()) return fmt::format("processes share its memory by CUDA IPC (virtual memory: {})", gpu.no_vmm);
  return fmt::format("processes cannot share its memory (virtual memory: {}; CUDA IPC: {})", gpu.no_vmm, gpu.no_ipc);
}

std::vector<int> nodes_of(GpuReport const& report) {
  std::vector<int> nodes;
  for (GpuFacts const& gpu : report.gpus) nodes.push_back(gpu.node);
  return nodes;
}

/// Which GPU each rank takes where they are chosen by rank.
Finding ring_of(GpuReport const& report) {
  auto const nodes = nodes_of(report), order = ring_order(nodes);
  bool const known = std::ranges::find(nodes, kUnknownNode) == nodes.end();
  std::string const taken = fmt::format("ranks 0 to {} take GPUs {}", order.size() - 1, fmt::join(order, " "));
  if (!known) return {"ring", taken + "; their NUMA nodes are not known", true};
  return {"ring",
          fmt::format("{}, on NUMA nodes {}: {} of {} hops around the ring cross between nodes", taken,
                      fmt::join(nodes, " "), crossings(order, nodes), order.size()),
          true};
}

// The GPUs, then the matrix of their links.
void add_gpus(std::vector<Finding>& list, GpuReport const& report) {
#if defined FLUX_WITH_SM90
  bool const kernels = true;
  std::string const built =
      "kernels for compute capability 9.0 (sm90 engine) and 8.0 and later (sm80) are in this build";
#elif defined FLUX_WITH_KERNELS
  bool const kernels = true;
  std::string const built = "kernels for compute capability 8.0 and later (sm80 engine) are in this build";
#else
  bool const kernels = false;
  std::string const built = "this build has no GPU kernels";
#endif
  list.push_back({"gpu",
                  report.none.empty() ? fmt::format("{} visible; {}", report.gpus.size(), built)
                                      : fmt::format("{}; {}; the host engine is used", report.none, built),
                  kernels && report.none.empty()});
  for (GpuFacts const& gpu : report.gpus)
    list.push_back({fmt::format("gpu {}", gpu.index),
                    fmt::format("{}, compute capability {}.{}, {} multiprocessors, {:.0f} GiB; {}", gpu.name,
                                gpu.capability / 10, gpu.capability % 10, gpu.processors,
                                static_cast<double>(gpu.memory_bytes) / (1 << 30), sharing_of(gpu)),
                    kernels && gpu.capability >= 80});
  for (GpuPair const& pair : report.pairs)
    list.push_back({fmt::format("link {} -> {}", pair.from, pair.to),
                    fmt::format("{}, access {}, native atomics {}; {}", pair.way, pair.access ? "yes" : "no",
                                pair.atomics ? "yes" : "no",
                                pair.works ? "copies, words behind them, stores and loads arrive as they were sent"
                                           : "does not work: " + pair.reason),
                    kernels && pair.works});
  if (report.gpus.size() > 1) list.push_back(ring_of(report));
  bool const broken = std::ranges::any_of(report.pairs, [](GpuPair const& pair) { return !pair.works; });
  bool const meet = report.no_host.empty();
  if (!report.gpus.empty())
    list.push_back(
        {"host memory",
         !meet ? report.no_host
         : broken
             ? "the driver registers it; processes meet there, because a link does not work"
             : "the driver registers it; processes meet there where a link does not work (FLUX_PEERS=host: always)",
         broken && kernels && meet});
  list.push_back({"nccl",
                  report.no_nccl.empty()
                      ? "here; processes go through it, unfused, where they do not meet in host memory either; "
                        "FLUX_PEERS=nccl insists"
                      : report.no_nccl,
                  broken && kernels && !meet && report.no_nccl.empty()});
  if (report.gpus.size() == 1)
    list.push_back(
        {"link", "one GPU: ranks may share it, for tests; nothing on it can be timed against a link", false});
}

nlohmann::json to_json(GpuReport const& report) {
  auto gpus = nlohmann::json::array(), links = nlohmann::json::array();
  for (GpuFacts const& g : report.gpus)
    gpus.push_back({{"index", g.index},
                    {"name", g.name},
                    {"capability", g.capability},
                    {"multiprocessors", g.processors},
                    {"memory_bytes", g.memory_bytes},
                    {"vmm", g.no_vmm.empty()},
                    {"ipc", g.no_ipc.empty()},
                    {"numa_node", g.node}});
  for (GpuPair const& p : report.pairs)
    links.push_back({{"from", p.from},
                     {"to", p.to},
                     {"way", p.way},
                     {"access", p.access},
                     {"native_atomics", p.atomics},
                     {"works", p.works},
                     {"reason", p.reason}});
  return {{"gpus", gpus}, {"links", links}, {"ring", ring_order(nodes_of(report))}};
}

std::vector<Finding> examine(GpuReport const& gpus) {
  std::vector<Finding> list;
  list.push_back({"cpu",
                  fmt::format("{}, {} cores, vector instructions: {}", cpu_name(), std::thread::hardware_concurrency(),
                              Eigen::SimdInstructionSetsInUse()),
                  true});
  list.push_back({"host engine", "Eigen, fp32 accumulation for bf16, fp16, fp32; fp64", true});
  add_gpus(list, gpus);
  list.push_back({"world threads", "ranks as threads of one process, up to 16", true});
  list.push_back({"world processes",
                  fmt::format("shared memory files without a name, mapped through /proc; {:.1f} GiB available",
                              static_cast<double>(available_bytes()) / (1 << 30)),
                  true});
  list.push_back({"nodes",
                  fmt::format("ranks that share memory make a node; between nodes sockets, at {} (FLUX_ADDRESS "
                              "chooses); FLUX_NODES or --nodes lets one machine play several",
                              fmt::join(own_addresses(), ", ")),
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

Machine measured_host() {
  Machine machine;
  int const ranks = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 2, 16);
  run_threads(ranks, {}, [&](World& world) {
    Machine const mine = bench::measure_host(world);
    if (world.rank() == 0) machine = mine;
  });
  return machine;
}

#ifdef FLUX_WITH_SM90
/// Two GPUs and the link between them; or one and its link to host memory.
Machine measured_gpus(int count) {
  if (count == 1) return bench::measure_gpu(*World::mirror(0, 2, Partner::kHost));
  Machine machine;
  run_devices(2, {}, [&](World& world) {
    Machine const mine = bench::measure_gpu(world);
    if (world.rank() == 0) machine = mine;
  });
  return machine;
}
#else
Machine measured_gpus(int) { throw Error(ErrorKind::kInternal, "no kernels in this build"); }  // it counts no GPUs
#endif

/// Measures the GPUs, or the host engine, a rank a core, and writes the machine that `flux plan --machine` reads.
int measure(std::string const& path, bool host, bool json) {
  require_writable(path);
  int const gpus = host ? 0 : usable_gpus().count;
  Machine const machine = gpus > 0 ? measured_gpus(gpus) : measured_host();
  write_file(path, to_json(machine));
  if (json)
    fmt::print("{}", to_json(machine));
  else
    fmt::print("{}: {}, {:.1f} GFLOP/s a rank, memory {:.1f} GB/s, link {:.1f} GB/s\n", path, machine.source,
               2 * machine.products * machine.processors * machine.clock_mhz / 1e3, machine.memory_gbps,
               machine.link.push_gbps);
  return kOk;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto json = std::make_shared<bool>(false), host = std::make_shared<bool>(false);
  auto machine = std::make_shared<std::string>();
  CLI::App* doctor =
      app.add_subcommand("doctor", "Shows what this machine has, what FLUX uses of it, and why not the rest");
  doctor->add_flag("--json", *json, "Prints one JSON object instead of text");
  doctor->add_option(
      "--measure", *machine,
      "Measures GPU and link instead, or where there is none the host engine, and writes the machine for "
      "flux plan --machine here");
  doctor->add_flag("--host", *host, "With --measure: the host engine, also where there are GPUs");
  doctor->callback([json, host, machine, &action] {
    action = [json, host, machine] {
      if (!machine->empty()) return measure(*machine, *host, *json);
      GpuReport const gpus = report_gpus(kTrialSeconds);
      auto const findings = examine(gpus);
      if (*json) {
        nlohmann::json out = to_json(gpus);
        out["commit"] = commit();
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
