#pragma once
// A result file that is whole after every problem: who stops a suite keeps what was measured, and goes on with it
// later.
#include <filesystem>
#include <string>
#include <vector>

#include "report/result_file.h"

namespace flux {

/// Whether both rows are of one problem: the fields up to the world, which are its name.
bool same_problem(ResultRow const& a, ResultRow const& b);

/// A command line without the program's path and without where the file lies (--resume, --out): what must be equal for
/// a suite to be gone on with.
std::string measured_command(std::string const& line);

class GrowingResult {
 public:
  /// `head`: all but the rows. `to`: a folder, where the file gets a name of its own once there are rows; or a file,
  /// which is gone on with where it exists already; empty: rows are kept here alone. Throws Error{kInvalid}, one
  /// sentence, for a file that is of another machine, commit, suite or command.
  GrowingResult(std::filesystem::path to, ResultFile head);

  bool has(ResultRow const& problem) const;
  /// The rows of one problem: in the file when this returns.
  void add(std::vector<ResultRow> const& rows);
  /// The last word, if there are rows.
  void close(std::optional<Sensors> const& after);

  ResultFile const& file() const { return file_; }
  std::filesystem::path const& path() const { return to_; }
  bool resumed() const { return resumed_; }

 private:
  void write();

  std::filesystem::path to_;
  ResultFile file_;
  bool resumed_ = false;
};

}  // namespace flux
