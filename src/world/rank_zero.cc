#include "world/rank_zero.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "io/quote.h"
#include "world/gpu.h"

namespace flux {
namespace {

constexpr std::string_view kNone = "none";

std::string usual_file() {
  if (char const* path = std::getenv("FLUX_PLAN_CACHE"); path && *path) return path;
  if (char const* caches = std::getenv("XDG_CACHE_HOME"); caches && *caches)
    return std::string(caches) + "/flux/plans.json";
  char const* home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/flux/plans.json" : std::string(kNone);
}

std::string text_of(std::string const& path) {
  constexpr uintmax_t kMost = uintmax_t{16} << 20;  // a plan takes some 300 bytes
  std::error_code failed;
  if (path.empty() || !std::filesystem::exists(path, failed)) return {};
  uintmax_t const bytes = std::filesystem::file_size(path, failed);  // fails for a folder
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!failed && bytes <= kMost && file && (bytes == 0 || text << file.rdbuf())) return text.str();
  fmt::print(stderr, "flux: note: the file of tuned plans {} {}; going on without tuned plans\n", quote(path),
             !failed && bytes > kMost ? fmt::format("has {} bytes; up to {} are read", bytes, kMost)
                                      : std::string("cannot be read"));
  return {};
}

}  // namespace

std::string plan_file(WorldOptions const& options) {
  std::string const path = options.plan_cache.empty() ? usual_file() : options.plan_cache;
  return path == kNone ? std::string() : path;
}

FromRankZero of_this_rank(WorldOptions const& options, Gpu const* gpu) {
  FromRankZero said;
  said.tune_seconds = options.tune_seconds;
  if (gpu) said.engine = gpu->chip().engine, said.processors = gpu->processors();
  if (gpu) said.across_pcie = gpu->across_pcie(), said.through_host = gpu->through_host();
  said.plans = text_of(plan_file(options));
  return said;
}

std::string to_bytes(FromRankZero const& said) {
  return fmt::format("{:d} {:d} {:d} {} {}\n{}", static_cast<int>(said.engine), said.across_pcie, said.through_host,
                     said.processors, said.tune_seconds, said.plans);
}

FromRankZero from_rank_zero(std::string const& bytes) {
  FromRankZero said;
  size_t const end = std::min(bytes.find('\n'), bytes.size());
  int engine = 0;
  std::istringstream(bytes.substr(0, end)) >> engine >> said.across_pcie >> said.through_host >> said.processors >>
      said.tune_seconds;
  said.engine = static_cast<EngineKind>(engine);
  said.plans = bytes.substr(std::min(end + 1, bytes.size()));
  return said;
}

}  // namespace flux
