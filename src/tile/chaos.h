#pragma once
// Hazards the tests plant. In a product build both functions vanish; the chaos build (FLUX_CHAOS) plants the one bug
// that the environment names and delays words at random, to show that the tests would catch it. Each bug stands where
// its kind of mistake would be made.
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

#if defined(FLUX_CHAOS) && !defined(__CUDACC__)
bool planted(Bug bug);
void jitter();
#elif defined(__CUDACC__)
__host__ __device__ constexpr bool planted(Bug) { return false; }
__host__ __device__ constexpr void jitter() {}
#else
constexpr bool planted(Bug) { return false; }
constexpr void jitter() {}
#endif

}  // namespace flux
