// flux compare: what became faster or slower from one result file to another.
#include <fmt/format.h>

#include "cli/command.h"
#include "report/compare.h"

namespace flux::cli {
namespace {

struct CompareOptions {
  std::string before, after;
  double threshold_percent = 2;
  bool all = false, json = false;
};

int run(CompareOptions const& o) {
  Comparison const comparison = compare(read_result(o.before), read_result(o.after), o.threshold_percent / 100);
  fmt::print("{}", o.json ? to_json(comparison) + "\n" : to_table(comparison, o.all));
  if (comparison.changes.empty())
    throw Error(ErrorKind::kInvalid, fmt::format("{} and {} have no row in common", o.before, o.after));
  return comparison.slower() > 0 ? kFailed : kOk;
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  auto o = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand(
      "compare", "Compares two result files row by row; exit code 1 if a row is slower beyond the spread of both");
  command->add_option("before", o->before, "The older result file")->required();
  command->add_option("after", o->after, "The newer result file")->required();
  command->add_option("--threshold", o->threshold_percent, "Per cent that a median may grow before it counts")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str();
  command->add_flag("--all", o->all, "Shows also the rows that stayed the same");
  command->add_flag("--json", o->json, "Prints one JSON object instead of text");
  command->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace flux::cli
