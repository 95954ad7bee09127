#pragma once
// Whether blocks of several launches can be on one GPU at the same time: shown, not assumed.
#include <span>

struct CUstream_st;

namespace flux {

/// Launches `blocks` blocks on each of the streams, each as large as the largest kernel of the engines (one a
/// processor), and lets all of them wait for each other. False if they did not meet within `limit_seconds`. Throws
/// Error{kDevice}.
bool resident_together(std::span<CUstream_st* const> streams, int blocks, double limit_seconds);

}  // namespace flux
