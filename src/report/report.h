#pragma once
// Result files and timelines as one page that needs nothing else: no network, no file beside it.
#include <optional>
#include <string>
#include <vector>

#include "report/result_file.h"
#include "trace/timeline.h"

namespace flux {

/// What goes into the page.
struct Report {
  struct Source {
    std::string name;  ///< of the file, without its folder
    ResultFile file;
  };
  struct Trace {
    std::string name;
    Timeline timeline;
  };
  std::vector<Source> files;  ///< the newest first
  std::vector<Trace> traces;
  std::vector<std::string> left_out;  ///< files that could not be read: a sentence each
  std::vector<std::string> notes;     ///< what a reader must know, such as that machines differ

  size_t rows() const;
};

/// Reads what can be read and says what cannot. Throws Error{kInvalid} if no file is good.
Report read_report(std::vector<std::string> const& results, std::vector<std::string> const& timelines);

/// Useful operations of one GPU a second, in 10^12: 2 m n k / tp of the whole time. Nothing for layers and models,
/// whose sizes are not those of one GEMM.
std::optional<double> tflops(ResultRow const& row);

/// How many times as long as the longer of GEMM and communication.
std::optional<double> over_floor(ResultRow const& row);

/// The page, and for scripts a summary of what is in it.
std::string to_html(Report const& report);
std::string to_json(Report const& report);

}  // namespace flux
