#pragma once
// Tables for the terminal.
#include <string>
#include <vector>

#include "report/result_file.h"

namespace flux {

using Cells = std::vector<std::string>;

/// Columns as wide as their widest cell; the first to the left, numbers to the right.
std::string lay_out(std::vector<Cells> const& lines);

/// What all methods of a problem share, in words.
std::string heading(ResultRow const& row);

}  // namespace flux
