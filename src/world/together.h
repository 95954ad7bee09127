#pragma once
// Steps that all ranks take or none: what one cannot do, every rank hears of.
#include <functional>

#include "flux/world.h"

namespace flux {

/// Collective: runs `step` here, then meets the others. Where it threw on any rank, every rank throws the error of the
/// first of them.
void together(Bootstrap& bootstrap, double limit_seconds, std::function<void()> const& step);

}  // namespace flux
