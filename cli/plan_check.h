#pragma once
// Simulated times beside those of result files.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "report/result_file.h"

namespace flux::cli {

struct CheckedRow {
  ResultRow row;
  std::string machine;
  double predicted_us = 0;
  double error() const { return predicted_us / row.total_us - 1; }
};

struct PlanCheck {
  std::vector<CheckedRow> rows;
  int left_out = 0;  ///< rows of methods, machines or plans that the simulator knows nothing of
  /// Of |error| over all rows.
  double quantile(double q) const;
};

/// Simulates every row of methods `flux` and `none` whose machine has a model. Throws Error{kInvalid}.
PlanCheck check_plans(std::vector<std::filesystem::path> const& files);

nlohmann::json to_json(PlanCheck const& check);
void print(PlanCheck const& check);

}  // namespace flux::cli
