#pragma once
// A suite is a list of units: a problem each, with all its methods, measured when it is its turn.
#include <functional>
#include <string>
#include <vector>

#include "report/result_file.h"

namespace flux::bench {

struct Unit {
  ResultRow problem;                                ///< the fields that name it; see same_problem()
  double expected_us = 1;                           ///< of all its measuring, for the time left
  std::function<std::vector<ResultRow>()> measure;  ///< its rows
};

}  // namespace flux::bench
