#pragma once
// Tables for the terminal.
#include <string>
#include <utility>
#include <vector>

#include "report/result_file.h"

namespace flux {

using Cells = std::vector<std::string>;

/// What all methods of a problem share, in words; and a method with its variant.
std::string heading(ResultRow const& row);
std::string method(ResultRow const& row);

/// Lines under the heading of their problem, problems in the order in which they first come.
std::string lay_out_by_problem(Cells const& titles, std::vector<std::pair<std::string, Cells>> const& lines);

}  // namespace flux
