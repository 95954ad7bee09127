#pragma once
// Two result files, row against row: what became faster or slower beyond the spread of both.
#include <string>
#include <vector>

#include "report/result_file.h"

namespace flux {

/// A row that both files have: the same method, variant and problem, in the same world and timing.
struct RowChange {
  enum class Verdict { kSame, kFaster, kSlower };
  ResultRow before, after;
  double ratio = 1;  ///< of the medians, after / before
  Verdict verdict = Verdict::kSame;
};

struct Comparison {
  std::vector<RowChange> changes;         ///< in the order of `after`
  std::vector<ResultRow> missing, added;  ///< in `before` alone, in `after` alone
  std::vector<std::string> differences;   ///< of the machines: a sentence each
  int slower() const;
  int faster() const;
};

/// A row is slower if its p10 lies above the other's p90 and its median is more than `threshold` (0.02: 2 %) longer;
/// faster the other way round. Where a file has a row twice, the last one counts.
Comparison compare(ResultFile const& before, ResultFile const& after, double threshold);

/// For the terminal. `all`: also the rows that stayed the same.
std::string to_table(Comparison const& comparison, bool all);
std::string to_json(Comparison const& comparison);

}  // namespace flux
