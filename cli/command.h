#pragma once
// What the subcommands share: the world they run in, how they end, and how they print.
#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/overlap.h"
#include "flux/plan.h"
#include "flux/world.h"
#include "trace/timeline.h"

namespace flux::cli {

// Exit codes.
inline constexpr int kOk = 0, kFailed = 1, kBadInput = 2, kWrongOutput = 3;

/// A subcommand registers its options and, if chosen, sets `action`; its result is the exit code.
using Action = std::function<int()>;
void add_run(CLI::App& app, Action& action);
void add_run_mlp(CLI::App& run, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_tune(CLI::App& app, Action& action);
void add_simulate(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_launch(CLI::App& app, Action& action);

/// The command line as it was given: for result files, and to start the ranks of a world of processes.
std::vector<std::string>& command_line();

/// Where the ranks run, and why, as the user is told.
struct Engine {
  bool gpu = false;
  std::string why;
};

void print_engine(Engine const& engine);
/// `4 ranks (threads)`, `4 ranks (processes on 2 nodes)`.
std::string ranks_of(World const& world);
/// What operators take on each rank beside their operands.
void print_memory(int64_t bytes);
/// What GPUs cannot do of a plan yet, or nothing.
std::string only_host(Plan const& plan);

/// Options that choose a world.
struct WorldChoice {
  std::string kind = "threads";
  int ranks = 4;
  int nodes = 0;          ///< played by this machine; 0: as the environment or the hosts say
  double link_gbps = -1;  ///< < 0: made so that communication takes half of the GEMM's time
  double link_latency_us = 5;
  double nic_gbps = 0, nic_latency_us = 10;  ///< the same between nodes; 0: none is declared
  double limit_seconds = 600;
  bool gpu = false, host = false;  ///< one of the two is forced
  CLI::Option const* kind_option = nullptr;

  void add_to(CLI::App& app);
  /// Those of its options that choose no ranks: a declared link and the limit.
  void add_limits_to(CLI::App& app);
  /// The options --gpu and --host, of verbs that have the choice.
  void add_gpu_to(CLI::App& app);
  /// Where ranks run: on GPUs if they are forced or there are some, unless `only_host` says what GPUs cannot do. Throws
  /// Error{kUnsupported} where they are forced and there are none.
  Engine engine(std::string const& only_host) const;
  /// Runs `body` on every rank: threads here, or processes that this one starts (then their exit code is returned), or
  /// the processes that a launcher has already started.
  int run(std::function<int(World&)> const& body, bool on_gpu = false) const;

 private:
  int run_threads_on(int gpus, WorldOptions const& options, std::function<int(World&)> const& body) const;
};

/// Options of everything that runs an operator.
struct Common {
  WorldChoice world;
  std::string plan_line, timeline_path;
  int samples = 5;
  uint64_t seed = 1;
  bool json = false;

  void add_to(CLI::App& app);
  /// All but those that choose the ranks.
  void add_measuring_to(CLI::App& app);
  Plan plan() const;
};

/// Declares the link, if none is, and times the subject, with a progress bar on rank 0. Collective.
bench::Overlap timed(World& world, bench::Subject const& subject, Common const& common);

/// Times, E and floor of one run, as JSON and as lines for a terminal.
nlohmann::json to_json(bench::Overlap const& overlap, Link link, int64_t sent_bytes);
void print_overlap(bench::Overlap const& overlap, Link link);

/// Records one call and writes its trace and picture, on rank 0, unless `path` is empty. `timeline` comes with title
/// and facts; the link's and the cores' are added. Collective. Returns what to tell the user, empty on other ranks.
std::string draw(World& world, std::string const& path, Timeline timeline, int workers,
                 std::function<void(Timeline*)> const& record, std::function<void()> const& run);

/// A path that an output can be written to is checked before the work begins.
void require_writable(std::string const& path);

}  // namespace flux::cli
