#include "report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "report/table.h"

namespace flux {
namespace {

/// What makes two rows the same measurement.
std::string key(ResultRow const& row) { return fmt::format("{} | {} {}", heading(row), row.method, row.variant); }

std::string_view name(RowChange::Verdict verdict) {
  switch (verdict) {
    case RowChange::Verdict::kSame: return "same";
    case RowChange::Verdict::kFaster: return "faster";
    case RowChange::Verdict::kSlower: return "slower";
  }
  return "?";
}

RowChange change(ResultRow const& before, ResultRow const& after, double threshold) {
  using enum RowChange::Verdict;
  RowChange c{before, after, after.total_us / before.total_us};
  if (after.p10_us > before.p90_us && c.ratio > 1 + threshold) c.verdict = kSlower;
  if (after.p90_us < before.p10_us && c.ratio < 1 / (1 + threshold)) c.verdict = kFaster;
  return c;
}

void differ(std::vector<std::string>& list, std::string_view what, std::optional<std::string> const& before,
            std::optional<std::string> const& after) {
  if (before != after)
    list.push_back(fmt::format("{} was {} and is {}", what, before.value_or("unknown"), after.value_or("unknown")));
}

int count(std::vector<RowChange> const& changes, RowChange::Verdict verdict) {
  return static_cast<int>(std::ranges::count(changes, verdict, &RowChange::verdict));
}

}  // namespace

int Comparison::slower() const { return count(changes, RowChange::Verdict::kSlower); }
int Comparison::faster() const { return count(changes, RowChange::Verdict::kFaster); }

Comparison compare(ResultFile const& before, ResultFile const& after, double threshold) {
  std::map<std::string, ResultRow const*> old, young;
  for (ResultRow const& row : before.rows) old[key(row)] = &row;
  for (ResultRow const& row : after.rows) young[key(row)] = &row;
  Comparison c;
  for (ResultRow const& row : after.rows) {
    if (young[key(row)] != &row) continue;  // it comes again
    auto const found = old.find(key(row));
    if (found == old.end())
      c.added.push_back(row);
    else
      c.changes.push_back(change(*found->second, row, threshold));
  }
  for (ResultRow const& row : before.rows)
    if (old[key(row)] == &row && !young.contains(key(row))) c.missing.push_back(row);

  MachineFacts const &a = before.machine, &b = after.machine;
  differ(c.differences, "the GPU", a.gpu, b.gpu), differ(c.differences, "the CPU", a.cpu, b.cpu);
  differ(c.differences, "the link", a.link, b.link), differ(c.differences, "the driver", a.driver, b.driver);
  differ(c.differences, "CUDA", a.cuda, b.cuda);
  if (a.gpus != b.gpus) c.differences.push_back(fmt::format("there were {} GPUs and are {}", a.gpus, b.gpus));
  return c;
}

std::string to_table(Comparison const& c, bool all) {
  std::string out;
  for (std::string const& difference : c.differences) out += "note: " + difference + "\n";
  std::vector<std::pair<std::string, Cells>> lines;
  for (RowChange const& change : c.changes)
    if (all || change.verdict != RowChange::Verdict::kSame)
      lines.push_back({heading(change.after),
                       {method(change.after), fmt::format("{:.1f}", change.before.total_us),
                        fmt::format("{:.1f}", change.after.total_us), fmt::format("{:.3f}", change.ratio),
                        std::string(name(change.verdict))}});
  out += lay_out_by_problem({"method", "before us", "after us", "ratio", "verdict"}, lines);
  if (!lines.empty()) out += "\n";
  auto list = [&](std::string_view where, std::vector<ResultRow> const& rows) {
    for (ResultRow const& row : rows) out += fmt::format("{}: {}, {}\n", where, heading(row), method(row));
  };
  list("only before", c.missing), list("only after", c.added);
  return out + fmt::format("{} rows in both files: {} faster, {} slower, {} within the spread\n", c.changes.size(),
                           c.faster(), c.slower(), c.changes.size() - c.faster() - c.slower());
}

std::string to_json(Comparison const& c) {
  auto row = [](ResultRow const& r) { return nlohmann::json{{"problem", heading(r)}, {"method", method(r)}}; };
  nlohmann::json json = {{"faster", c.faster()}, {"slower", c.slower()}, {"differences", c.differences}};
  json["rows"] = json["missing"] = json["added"] = nlohmann::json::array();
  for (RowChange const& change : c.changes) {
    nlohmann::json one = row(change.after);
    one["before_us"] = change.before.total_us, one["after_us"] = change.after.total_us;
    one["ratio"] = change.ratio, one["verdict"] = name(change.verdict);
    json["rows"].push_back(one);
  }
  for (ResultRow const& r : c.missing) json["missing"].push_back(row(r));
  for (ResultRow const& r : c.added) json["added"].push_back(row(r));
  return json.dump(2);
}

}  // namespace flux
