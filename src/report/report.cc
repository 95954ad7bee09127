#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "flux/error.h"
#include "io/quote.h"
#include "report/table.h"
#include "trace/trace.h"

namespace flux {
namespace {

/// A row of the exchange without a GEMM, as the suite decode has it.
bool is_exchange_alone(ResultRow const& row) { return row.method == "comm"; }

std::string machine(MachineFacts const& m) {
  if (m.gpu) return fmt::format("{} x {}", m.gpus, *m.gpu);
  std::string const cpu = m.cpu.value_or("an unknown CPU");
  return m.cores ? fmt::format("{} cores of {}", *m.cores, cpu) : cpu;
}

/// The last part of a path, unless two files would then have one name.
std::vector<std::string> names(std::vector<std::string> const& paths) {
  std::map<std::string, std::set<std::string>> by_name;
  for (auto const& path : paths) by_name[std::filesystem::path(path).filename()].insert(path);
  std::vector<std::string> out;
  for (auto const& path : paths) {
    std::string const name = std::filesystem::path(path).filename();
    out.push_back(by_name[name].size() == 1 ? name : path);
  }
  return out;
}

/// Calls read(path, name) for each path once; an error is a sentence of what was left out.
template <class Read>
void read_each(std::vector<std::string> const& paths, Report& report, Read&& read) {
  auto const short_names = names(paths);
  std::set<std::string> seen;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!seen.insert(paths[i]).second) {
      report.notes.push_back(fmt::format("{} was given twice and is shown once.", quote(paths[i])));
      continue;
    }
    try {
      read(paths[i], short_names[i]);
    } catch (Error const& error) {
      report.left_out.push_back(error.what());
    }
  }
}

void note_machines(Report& report) {
  std::set<std::string> machines;
  for (auto const& source : report.files) machines.insert(machine(source.file.machine));
  if (machines.size() > 1)
    report.notes.push_back(fmt::format("The files come from {} machines ({}): compare times within a file only.",
                                       machines.size(), fmt::join(machines, "; ")));
}

void note_repeats(Report& report) {
  for (auto const& [name, file] : report.files) {
    std::set<std::string> seen;
    size_t again = 0;
    for (ResultRow const& row : file.rows) again += !seen.insert(heading(row) + " | " + method(row)).second;
    if (again > 0)
      report.notes.push_back(
          fmt::format("{} measures rows again ({}): charts show the last of each, the table all.", quote(name), again));
  }
}

}  // namespace

size_t Report::rows() const {
  size_t count = 0;
  for (auto const& source : files) count += source.file.rows.size();
  return count;
}

Report read_report(std::vector<std::string> const& results, std::vector<std::string> const& timelines) {
  Report report;
  read_each(results, report, [&](std::string const& path, std::string const& name) {
    report.files.push_back({name, read_result(path)});
  });
  read_each(timelines, report, [&](std::string const& path, std::string const& name) {
    report.traces.push_back({name, read_chrome_json(path)});
  });
  if (report.files.empty() && report.traces.empty())
    throw Error(ErrorKind::kInvalid,
                fmt::format("no file is good, so there is no page: {}", fmt::join(report.left_out, "; ")));
  std::ranges::stable_sort(report.files, std::greater(), [](auto const& source) { return source.file.date; });
  note_machines(report);
  note_repeats(report);
  return report;
}

std::optional<double> tflops(ResultRow const& row) {
  bool const one_gemm = row.op == "gemm" || row.op == "ag_gemm" || row.op == "gemm_rs" || row.op == "gemm_ar";
  if (!one_gemm || is_exchange_alone(row) || row.tp < 1 || row.total_us <= 0) return {};
  double const operations = 2.0 * static_cast<double>(row.m) * static_cast<double>(row.n) * static_cast<double>(row.k);
  return operations / static_cast<double>(row.tp) / row.total_us * 1e-6;
}

std::optional<double> over_floor(ResultRow const& row) {
  if (!row.floor_us || *row.floor_us <= 0 || is_exchange_alone(row)) return {};
  return row.total_us / *row.floor_us;
}

std::string to_json(Report const& report) {
  nlohmann::ordered_json json = {{"rows", report.rows()}};
  json["files"] = json["timelines"] = nlohmann::ordered_json::array();
  for (auto const& [name, file] : report.files)
    json["files"].push_back({{"name", name},
                             {"suite", file.suite},
                             {"date", file.date},
                             {"commit", file.commit},
                             {"machine", machine(file.machine)},
                             {"rows", file.rows.size()}});
  for (auto const& [name, timeline] : report.traces)
    json["timelines"].push_back({{"name", name}, {"spans", timeline.spans.size()}});
  json["left_out"] = report.left_out;
  json["notes"] = report.notes;
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace flux
