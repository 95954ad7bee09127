// flux launch -n RANKS -- COMMAND: starts a command once for each rank.
#include "world/launcher.h"

#include "cli/command.h"

namespace flux::cli {

void add_launch(CLI::App& app, Action& action) {
  struct Options {
    int ranks = 1;
    double grace_seconds = 605;
    std::vector<std::string> command;
  };
  auto o = std::make_shared<Options>();
  CLI::App* launch = app.add_subcommand(
      "launch",
      "Starts a command once for each rank of a world of processes (FLUX_RANK, FLUX_WORLD_SIZE, FLUX_BOOTSTRAP)");
  launch->add_option("-n,--ranks", o->ranks, "World size")->check(CLI::Range(1, 16))->required();
  launch->add_option("--grace-seconds", o->grace_seconds, "How long the others may still run after a rank failed")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  launch->add_option("command", o->command, "The command and its arguments, after --")->required();
  launch->positionals_at_end();
  launch->callback([o, &action] { action = [o] { return flux::launch(o->ranks, o->command, o->grace_seconds); }; });
}

}  // namespace flux::cli
