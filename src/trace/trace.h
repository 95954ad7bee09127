#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "trace/timeline.h"

namespace flux {

/// Trace event JSON for ui.perfetto.dev and chrome://tracing: a rank is a process, a worker or copy engine a thread,
/// times in microseconds from the first span. An arrow leads from each copy to the first tile that its rows release.
std::string to_chrome_json(Timeline const& timeline);

/// And back, all but `feeds` and the order of the facts. `name` stands for the file in messages. Throws
/// Error{kInvalid}, one sentence: not JSON, truncated, no trace, a trace of something else, no spans.
Timeline parse_chrome_json(std::string_view text, std::string_view name);
Timeline read_chrome_json(std::filesystem::path const& path);

/// The same as a self-contained picture, 1200 units wide: one lane a rank and track. What is narrower than a pixel is
/// drawn together.
std::string to_svg(Timeline const& timeline);

/// The files of a timeline.
struct TraceFiles {
  std::filesystem::path json, svg;
};

/// Writes both, each whole or not at all: `path` as given for the trace, and `path` with the ending `.svg` for the
/// picture. A path that itself ends in `.svg` names the picture; the trace then ends in `.json`.
TraceFiles write_trace(std::filesystem::path const& path, Timeline const& timeline);

}  // namespace flux
