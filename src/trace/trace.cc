#include "trace/trace.h"

#include "io/atomic_file.h"

namespace flux {

TraceFiles write_trace(std::filesystem::path const& path, Timeline const& timeline) {
  TraceFiles files{path, path};
  files.svg.replace_extension(".svg");
  if (path.extension() == ".svg") files.json.replace_extension(".json");
  // Both are written in full before either appears.
  AtomicFile json(files.json), svg(files.svg);
  json.write(to_chrome_json(timeline));
  svg.write(to_svg(timeline));
  json.commit();
  svg.commit();
  return files;
}

}  // namespace flux
