#include "cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "report/progress.h"
#include "trace/trace.h"
#include "world/gpu_report.h"
#include "world/launcher.h"

namespace flux::cli {

void WorldChoice::add_to(CLI::App& app) {
  kind_option = app.add_option("--world", kind, "Ranks as `threads` of one process or as `processes` of this host")
                    ->check(CLI::IsMember({"threads", "processes"}))
                    ->capture_default_str();
  app.add_option("--ranks", ranks, "World size")->check(CLI::Range(1, 16))->capture_default_str();
  app.add_option(
         "--nodes", nodes,
         "Nodes that the ranks make, with sockets between them, also on one host; default: FLUX_NODES, or a node "
         "a host")
      ->check(CLI::Range(1, 16));
  add_limits_to(app);
}

void WorldChoice::add_limits_to(CLI::App& app) {
  app.add_option(
         "--link-gbps", link_gbps,
         "Rate of the declared link in 10^9 bytes/s and rank; 0: none; default: communication takes half of the "
         "GEMM's time")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--link-latency-us", link_latency_us, "Latency of a transfer on the declared link")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option(
         "--nic-gbps", nic_gbps,
         "Rate of the declared interface between nodes, in 10^9 bytes/s and rank; 0: none, as fast as sockets are")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--nic-latency-us", nic_latency_us, "Latency of a transfer on it")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--limit-seconds", limit_seconds, "A wait this long ends the call on every rank")
      ->check(CLI::Range(0.01, 1e6))
      ->capture_default_str();
}

void WorldChoice::add_gpu_to(CLI::App& app) {
  CLI::Option* const on_gpu = app.add_flag(
      "--gpu", gpu,
      "Ranks on GPUs, one each; fewer GPUs than ranks: up to 8 ranks share GPU 0, or with --world processes any number "
      "shares all of them in turn. Default: where this build has kernels for the GPUs and no more than 4 ranks share "
      "one");
  on_gpu->excludes("--link-gbps");
  app.add_flag("--host", host, "Ranks on this machine's cores, also where there are GPUs")->excludes(on_gpu);
}

Engine WorldChoice::engine(std::string const& only_host) const {
  if (host) return {false, "asked for by --host"};
  if (!gpu && nodes > 1) return {false, "--nodes: several nodes are of the host engine so far"};
  if (!gpu && link_gbps >= 0) return {false, "--link-gbps declares a link of the host"};
  if (!gpu && !only_host.empty()) return {false, only_host};
  // Ranks that are threads of one GPU need a hardware queue a stream; read at the first use of CUDA.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  UsableGpus const usable = usable_gpus();
  // Eight have been seen to hold each other up, streams of all being more than the GPU has queues.
  constexpr int kShareByThemselves = 4;
  if (!gpu && usable.count > 0 && usable.count < ranks && ranks > kShareByThemselves)
    return {false, fmt::format("{} ranks would share {}; --gpu insists", ranks,
                               usable.count == 1 ? "one GPU" : fmt::format("{} GPUs", usable.count))};
  if (usable.count > 0) return {true, gpu ? "asked for by --gpu" : "--host for this machine's cores"};
  if (gpu)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("--gpu asks for GPUs, but {}; leave it out for the host engine", usable.none));
  return {false, usable.none};
}

std::string only_host(Plan const& plan) { return plan.wide_slots ? "GPUs have no slots=fp32 yet" : ""; }

void print_engine(Engine const& engine) {
  fmt::print("  runs on                   {:>10}      {}\n", engine.gpu ? "GPUs" : "the host", engine.why);
}

std::string ranks_of(World const& world) {
  return fmt::format("{} ranks ({}{})", world.size(), world.kind(),
                     world.nodes() > 1 ? fmt::format(" on {} nodes", world.nodes()) : "");
}

void print_memory(int64_t bytes) {
  fmt::print("  memory of a rank          {:10.2f} MiB  beside the operands\n", static_cast<double>(bytes) / (1 << 20));
}

int WorldChoice::run_threads_on(int gpus, WorldOptions const& options, std::function<int(World&)> const& body) const {
  std::atomic<int> worst{kOk};
  auto const way = gpus == 0 ? run_threads : gpus >= ranks ? run_devices : run_shared_gpu;
  way(ranks, options, [&](World& world) {
    int const code = body(world);
    if (code != kOk) worst = code;
  });
  return worst;
}

int WorldChoice::run(std::function<int(World&)> const& body, bool on_gpu) const {
  WorldOptions options;
  options.limit_seconds = limit_seconds, options.nodes = nodes;
  if (link_gbps > 0) options.link = {link_gbps, link_latency_us};
  if (nic_gbps > 0) options.nic = {nic_gbps, nic_latency_us};
  if (on_gpu) options.device = kGpuByRank;
  int const gpus = on_gpu ? usable_gpus().count : 0;
  // Processes where they are asked for, or where each can have a GPU of its own.
  bool const chosen = kind_option && kind_option->count() > 0;
  bool const processes = chosen ? kind == "processes" : on_gpu && ranks > 1 && gpus >= ranks;
  auto bootstrap = processes || (on_gpu && !chosen) ? bootstrap_from_environment() : nullptr;
  if (!processes && !bootstrap) return run_threads_on(gpus, options, body);
  if (!bootstrap) {
    auto command = command_line();
    command[0] = std::filesystem::read_symlink("/proc/self/exe");
    return launch(ranks, command, limit_seconds + 5);
  }
  int const rank = bootstrap->rank();
  try {
    auto const world = World::processes(std::move(bootstrap), options);
    return body(*world);
  } catch (Error const& e) {
    // Every rank finds the same mistake in its input, or the same thing missing; one says it.
    bool const same = e.kind() == ErrorKind::kInvalid || e.kind() == ErrorKind::kUnsupported;
    if (same && rank != 0) return kBadInput;
    throw;
  }
}

void Common::add_to(CLI::App& app) {
  world.add_to(app);
  add_measuring_to(app);
}

void Common::add_measuring_to(CLI::App& app) {
  app.add_option("--plan", plan_line, "Choices as KEY=VALUE words, e.g. 'tile=128x256 route=stage'");
  app.add_option("--samples", samples, "Timed rounds of each method; 0: only check the result")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  app.add_option("--seed", seed, "Of the random inputs")->capture_default_str();
  app.add_option("--timeline", timeline_path,
                 "Writes a Perfetto/Chrome trace of one call here, and an SVG picture beside it");
  app.add_flag("--json", json, "Prints one JSON object instead of text");
}

Plan Common::plan() const { return parse_plan(plan_line); }

bench::Overlap timed(World& world, bench::Subject const& subject, Common const& common) {
  if (common.world.link_gbps < 0 && subject.sent_bytes > 0)
    world.set_link(bench::link_for_ratio(world, subject, 0.5, common.world.link_latency_us));
  std::unique_ptr<Progress> progress;
  if (world.rank() == 0) progress = std::make_unique<Progress>("timing", bench::overlap_runs(subject, common.samples));
  return bench::measure_overlap(world, subject, common.samples, [&] {
    if (progress) progress->advance();
  });
}

nlohmann::json to_json(bench::Overlap const& o, Link link, int64_t sent_bytes) {
  return {{"total_us", o.fused.median()},
          {"p10_us", o.fused.quantile(0.1)},
          {"p90_us", o.fused.quantile(0.9)},
          {"none_us", o.none.median()},
          {"gemm_us", o.gemm.median()},
          {"gemm_by", o.gemm_by},
          {"comm_us", o.comm.median()},
          {"ect_us", o.ect_us()},
          {"efficiency", o.hides() ? nlohmann::json(o.efficiency()) : nlohmann::json()},
          {"floor_us", o.floor_us()},
          {"sent_bytes", sent_bytes},
          {"link", {{"declared", link.gbps > 0}, {"gbps", link.gbps}, {"latency_us", link.latency_us}}}};
}

void print_overlap(bench::Overlap const& o, Link link) {
  double const total = o.fused.median();
  fmt::print("  GEMM alone                {:10.2f} ms\n", o.gemm.median() / 1e3);
  fmt::print("  communication alone       {:10.2f} ms   {}\n", o.comm.median() / 1e3,
             link.gbps > 0
                 ? fmt::format("declared link, not real: {:.3g} GB/s a rank, {:g} us", link.gbps, link.latency_us)
                 : std::string("memory to memory, no declared link"));
  fmt::print("  one after the other       {:10.2f} ms\n", o.none.median() / 1e3);
  fmt::print("  fused                     {:10.2f} ms   {:.2f} x as fast, {:.2f} x the floor\n", total / 1e3,
             o.none.median() / total, total / o.floor_us());
  if (o.hides())
    fmt::print("  overlap efficiency E      {:10.2f}      1: all communication hidden, 0: none\n", o.efficiency());
}

namespace {

// Bars of a timeline then include waits for a core.
std::string cores_shared(int workers) {
  int const cores = static_cast<int>(std::thread::hardware_concurrency());
  if (workers <= cores) return fmt::format("a core for each of {} workers", workers);
  return fmt::format("{} workers share {} cores, so bars include waits for a core", workers, cores);
}

}  // namespace

std::string draw(World& world, std::string const& path, Timeline timeline, int workers,
                 std::function<void(Timeline*)> const& record, std::function<void()> const& run) {
  if (path.empty()) return {};
  Link const link = world.link();
  if (world.on_gpu()) {
    timeline.facts.emplace_back("ranks", fmt::format("{} on GPUs ({})", world.size(), world.kind()));
  } else {
    timeline.facts.emplace_back("ranks", cores_shared(world.size() * workers));
    timeline.facts.emplace_back(
        "link", link.gbps > 0 ? fmt::format("declared, {:.3g} GB/s a rank", link.gbps) : "none declared");
  }
  record(&timeline);
  world.barrier();
  run();
  record(nullptr);
  auto const bytes = to_bytes(timeline);
  auto const all = world.all_gather({reinterpret_cast<char const*>(bytes.data()), bytes.size()});
  if (world.rank() != 0) return {};
  Timeline whole;
  for (auto const& one : all) whole.merge(timeline_from(std::as_bytes(std::span(one.data(), one.size()))));
  TraceFiles const files = write_trace(path, whole);
  return fmt::format("timeline: {} (open in ui.perfetto.dev), picture: {}", files.json.string(), files.svg.string());
}

void require_writable(std::string const& path) {
  if (path.empty()) return;
  std::filesystem::path const folder = std::filesystem::absolute(path).parent_path();
  if (access(folder.c_str(), W_OK) != 0 || std::filesystem::is_directory(path))
    throw Error(ErrorKind::kInvalid,
                fmt::format("{} cannot be written: {} is not a folder that can be written to, or the name "
                            "is a folder's",
                            path, folder.string()));
}

}  // namespace flux::cli
