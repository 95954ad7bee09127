#include "report/growing_result.h"

#include <fmt/format.h>

#include <sstream>
#include <tuple>

#include "flux/error.h"
#include "io/atomic_file.h"
#include "io/quote.h"
#include "report/result_fields.h"

namespace flux {
namespace {

/// One sentence about the first thing in which a file differs from what is measured now.
void require_same(ResultFile const& old, ResultFile const& now, std::filesystem::path const& path) {
  auto refuse = [&](std::string_view what, std::string const& was, std::string const& is) {
    if (was != is)
      throw Error(ErrorKind::kInvalid,
                  fmt::format("{} cannot be gone on with: its {} is {}, and now it is {}; name another file or folder",
                              quote(path.native()), what, quote(was), quote(is)));
  };
  refuse("suite", old.suite, now.suite);
  refuse("commit", old.commit, now.commit);
  refuse("command", measured_command(old.command), measured_command(now.command));
  auto text = [](auto const& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::optional<std::string>>)
      return value.value_or("none");
    else if constexpr (std::is_same_v<std::decay_t<decltype(value)>, int64_t>)
      return std::to_string(value);
    else
      return value ? std::to_string(*value) : std::string("none");
  };
  std::vector<std::string> before;
  each_machine_field(old.machine, [&](char const*, auto const& value) { before.push_back(text(value)); });
  size_t i = 0;
  each_machine_field(now.machine, [&](char const* key, auto const& value) {
    refuse(fmt::format("machine's {}", key), before[i++], text(value));
  });
}

}  // namespace

bool same_problem(ResultRow const& a, ResultRow const& b) {
  auto name = [](ResultRow const& row) {
    return std::tie(row.workload, row.op, row.m, row.n, row.k, row.tp, row.dtype, row.weight, row.epilogue);
  };
  return name(a) == name(b);
}

std::string measured_command(std::string const& line) {
  std::istringstream in(line);
  std::string word, kept;
  in >> word;  // the program
  while (in >> word) {
    bool const place = word == "--resume" || word == "--out" || word == "-o";
    if (place) in >> word;
    if (place || word.starts_with("--resume=") || word.starts_with("--out=")) continue;
    kept += (kept.empty() ? "" : " ") + word;
  }
  return kept;
}

GrowingResult::GrowingResult(std::filesystem::path to, ResultFile head) : to_(std::move(to)), file_(std::move(head)) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(to_, ignored)) return;
  ResultFile old = read_result(to_);
  require_same(old, file_, to_);
  file_ = std::move(old), resumed_ = true;
}

bool GrowingResult::has(ResultRow const& problem) const {
  for (ResultRow const& row : file_.rows)
    if (same_problem(row, problem)) return true;
  return false;
}

void GrowingResult::add(std::vector<ResultRow> const& rows) {
  file_.rows.insert(file_.rows.end(), rows.begin(), rows.end());
  write();
}

void GrowingResult::close(std::optional<Sensors> const& after) {
  file_.after = after;
  if (!file_.rows.empty()) write();
}

void GrowingResult::write() {
  if (to_.empty()) return;
  std::string const text = to_json(file_);
  if (std::filesystem::is_directory(to_)) to_ = free_result_path(to_, file_);
  write_file(to_, text);
}

}  // namespace flux
