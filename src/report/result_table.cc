#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "report/table.h"

namespace flux {

std::string heading(ResultRow const& row) {
  std::string text =
      fmt::format("{}{}{}: m {}, n {}, k {}, {} ranks, {}, {}", row.workload, row.workload.empty() ? "" : " ", row.op,
                  row.m, row.n, row.k, row.tp, row.dtype, row.weight);
  if (row.epilogue != "none") text += ", " + row.epilogue;
  text += fmt::format("; {} over {}{}", row.world, row.link, row.duplex ? ", both ways" : "");
  if (row.incoming) text += ", incoming by " + *row.incoming;
  if (row.nodes > 1) text += fmt::format(", {} nodes", row.nodes);
  text += fmt::format("; {}, {}", row.timing, row.cache);
  if (row.phase) text += ", " + *row.phase;
  return text;
}

std::string method(ResultRow const& row) { return row.method + (row.variant.empty() ? "" : " " + row.variant); }

namespace {

/// Columns as wide as their widest cell; the first to the left, numbers to the right.
std::string lay_out(std::vector<Cells> const& lines) {
  std::vector<size_t> widths(lines[0].size());
  for (Cells const& line : lines)
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string out;
  for (Cells const& line : lines) {
    out += fmt::format("  {:<{}}", line[0], widths[0]);
    for (size_t i = 1; i < line.size(); ++i) out += fmt::format("  {:>{}}", line[i], widths[i]);
    out += '\n';
  }
  return out;
}

std::string number(std::optional<double> value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

Cells cells(ResultRow const& row) {
  std::optional<double> over_floor;
  if (row.floor_us && *row.floor_us > 0 && row.ect_us) over_floor = row.total_us / *row.floor_us;
  return {method(row),
          number(row.total_us, 1),
          number(row.p10_us, 1),
          number(row.p90_us, 1),
          number(row.gemm_us, 1),
          number(row.comm_us, 1),
          number(row.ect_us, 1),
          number(row.efficiency, 2),
          number(over_floor, 3),
          row.error ? fmt::format("{:.1e}", *row.error) : "-"};
}

}  // namespace

std::string lay_out_by_problem(Cells const& titles, std::vector<std::pair<std::string, Cells>> const& lines) {
  std::vector<std::pair<std::string, std::vector<Cells>>> problems;
  for (auto const& [text, line] : lines) {
    auto at = std::ranges::find(problems, text, &std::pair<std::string, std::vector<Cells>>::first);
    if (at == problems.end()) at = problems.insert(at, {text, {titles}});
    at->second.push_back(line);
  }
  std::string out;
  for (auto const& [text, table] : problems) out += (out.empty() ? "" : "\n") + text + "\n" + lay_out(table);
  return out;
}

std::string to_table(ResultFile const& file) {
  std::vector<std::pair<std::string, Cells>> lines;
  for (ResultRow const& row : file.rows) lines.push_back({heading(row), cells(row)});
  return lay_out_by_problem({"method", "total us", "p10", "p90", "GEMM", "comm", "ECT", "E", "x floor", "error"},
                            lines);
}

}  // namespace flux
