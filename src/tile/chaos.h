#pragma once
// Hazards the tests plant. In a product build both functions vanish; the chaos build (FLUX_CHAOS) plants one bug and
// delays words at random, to show that the tests would catch it. Each bug stands where its kind of mistake would be
// made. Included by tile/signal.h, which says what FLUX_HD is.
#include <type_traits>

namespace flux {

enum class Bug {
  kNone,
  kNoWait,               // a gate that does not wait
  kRelaxedAcquire,       // a flag read without acquire
  kAnnounceBeforeStore,  // a tile announced before it is stored
  kWrongSlot,            // a partial stored in a neighbour's slot
  kRaggedBand,           // a tile that straddles two owners treated as one owner's
  kNoCredit,             // a buffer reused while somebody may still read it
  kStaleDigest,          // a word left from the call before taken for this call's
  kFlagArrayTooSmall,    // words sized from another plan than the one used
  kLostAbort,            // giving up without telling the others
  kSumOrder,             // partials added in another order than by rank
};

#if defined(FLUX_CHAOS)
/// Plants `bug` for the rest of this process, in place of the one that the environment variable FLUX_BUG numbers.
void plant(Bug bug);
bool is_planted(Bug bug);
constexpr bool planted(Bug bug) { return !std::is_constant_evaluated() && is_planted(bug); }
/// Now and then lets other threads go first.
void jitter();
#else
FLUX_HD constexpr bool planted(Bug) { return false; }
FLUX_HD constexpr void jitter() {}
#endif

}  // namespace flux
