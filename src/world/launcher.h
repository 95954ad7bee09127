#pragma once
// Starts the ranks of a world as processes of this host and is their meeting point.
#include <string>
#include <vector>

namespace flux {

/// Runs `command` once for each of `ranks` ranks, with FLUX_RANK, FLUX_WORLD_SIZE and FLUX_BOOTSTRAP set, and serves
/// their bootstrap until all have ended. A rank that dies is named on stderr at once; the others then have
/// `grace_seconds` to end by themselves before they are terminated. Returns 0, or the exit status of the first rank
/// that failed (128 + signal for one that was killed). Throws `Error` if a process cannot be started.
int launch(int ranks, std::vector<std::string> const& command, double grace_seconds);

}  // namespace flux
