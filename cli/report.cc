// flux report: result files and timelines as one page.
#include <fmt/format.h>

#include <filesystem>

#include "cli/command.h"
#include "io/atomic_file.h"
#include "report/report.h"

namespace flux::cli {
namespace {

struct ReportOptions {
  std::vector<std::string> results, timelines;
  std::string out = "report.html";
  bool json = false;
};

/// A measurement is never replaced by its own report.
void require_not_an_input(ReportOptions const& o) {
  std::error_code ignored;
  for (auto const* list : {&o.results, &o.timelines})
    for (std::string const& input : *list)
      if (std::filesystem::equivalent(input, o.out, ignored))
        throw Error(ErrorKind::kInvalid, fmt::format("{} is an input; give another name for the page", o.out));
}

int run(ReportOptions const& o) {
  if (o.results.empty() && o.timelines.empty())
    throw Error(ErrorKind::kInvalid, "nothing to report: give result files, such as bench/results/*.json");
  require_writable(o.out);
  require_not_an_input(o);
  Report const report = read_report(o.results, o.timelines);
  write_file(o.out, to_html(report));
  for (std::string const& sentence : report.left_out) fmt::print(stderr, "flux: left out: {}\n", sentence);
  for (std::string const& sentence : report.notes) fmt::print(stderr, "flux: note: {}\n", sentence);
  if (o.json) {
    auto json = nlohmann::ordered_json::parse(to_json(report));
    json["page"] = o.out;
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}: {} rows; result files: {}, timelines: {}, left out: {}\n", o.out, report.rows(),
               report.files.size(), report.traces.size(), report.left_out.size());
  }
  return kOk;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto o = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand(
      "report", "Draws result files and timelines as one HTML page that needs no network and no other file");
  command->add_option("results", o->results, "Result files, as flux bench writes them");
  command
      ->add_option("--timeline", o->timelines,
                   "A trace that --timeline of flux run or flux bench wrote; may be given several times")
      ->allow_extra_args(false);
  command->add_option("-o,--out", o->out, "The page, written whole or not at all")->capture_default_str();
  command->add_flag("--json", o->json, "Prints what went into the page, and what was left out, as one JSON object");
  command->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace flux::cli
