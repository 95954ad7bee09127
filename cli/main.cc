// flux: run | plan | tune | simulate | bench | compare | report | doctor | launch. One file a subcommand.
#include <fmt/format.h>

#include <cstdio>

#include "cli/command.h"

namespace flux::cli {

std::vector<std::string>& command_line() {
  static std::vector<std::string> line;
  return line;
}

namespace {

int fail(std::string const& message, int code) {
  fmt::print(stderr, "flux: {}\n", message);
  return code;
}

int run(int argc, char** argv) {
  command_line().assign(argv, argv + argc);
  CLI::App app{"FLUX hides tensor-parallel communication inside the GEMM."};
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Help of all subcommands");
  Action action;
  add_run(app, action);
  add_bench(app, action);
  add_compare(app, action);
  add_report(app, action);
  add_plan(app, action);
  add_tune(app, action);
  add_simulate(app, action);
  add_doctor(app, action);
  add_launch(app, action);
  auto named = [&](CLI::App* verb) { return verb->check_name(argv[1]); };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(named).empty())
    return fail(
        fmt::format("'{}' is no verb; there are run, plan, tune, simulate, bench, compare, report, doctor and launch",
                    argv[1]),
        kBadInput);
  try {
    app.parse(argc, argv);
  } catch (CLI::CallForHelp const& e) {
    return app.exit(e);
  } catch (CLI::CallForAllHelp const& e) {
    return app.exit(e);
  } catch (CLI::ParseError const& e) {
    return fail(fmt::format("{}; see flux --help-all", e.what()), kBadInput);
  }
  try {
    return action();
  } catch (Error const& e) {
    bool const input = e.kind() == ErrorKind::kInvalid || e.kind() == ErrorKind::kUnsupported;
    return fail(e.what(), input ? kBadInput : kFailed);
  } catch (std::bad_alloc const&) {
    return fail("not enough memory for these sizes on this machine", kBadInput);
  } catch (std::exception const& e) {
    return fail(e.what(), kFailed);
  }
}

}  // namespace
}  // namespace flux::cli

int main(int argc, char** argv) { return flux::cli::run(argc, argv); }
