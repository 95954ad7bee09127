#pragma once
// Words: 32-bit flags in memory that several ranks see, and the bounded wait for one. The only file that knows whether
// it is compiled for the host or for a GPU.
//
// A word has one setter and one clearer. It is 0 (wait), the call's digest (go), or something else (a peer makes
// another call: an error). Setting is a release and waiting an acquire, both at system scope: whatever the setter wrote
// before, the waiter reads after.
#include <cstdint>

#if defined(__CUDACC__)
#define FLUX_HD __host__ __device__
#else
#define FLUX_HD
#include <atomic>
#include <chrono>
#include <thread>
#endif

#include "tile/chaos.h"  // uses FLUX_HD

namespace flux {

using Word = uint32_t;
inline constexpr int kMaxRanks = 16;
inline constexpr Word kGranted = 1;  // the value of a credit

/// a / b of numbers that are not negative. A GPU divides 64 bits by a call; the rows and columns it sees fit into 32.
FLUX_HD constexpr int64_t quotient(int64_t a, int64_t b) {
#if defined(__CUDA_ARCH__)
  return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
#else
  return a / b;
#endif
}

/// One buffer a rank, at the address each has in this process or on this GPU.
template <class T>
struct Symmetric {
  T* base[kMaxRanks] = {};
  FLUX_HD T* at(int rank) const { return base[rank]; }
};

// ---- the primitives, host and device ----

/// Reads a word; everything its setter wrote before is visible after.
FLUX_HD inline Word load_acquire(Word const* word) {
#if defined(__CUDA_ARCH__)
  Word value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
#elif !defined(__CUDACC__)
  auto order = planted(Bug::kRelaxedAcquire) ? std::memory_order_relaxed : std::memory_order_acquire;
  return std::atomic_ref<Word>(*const_cast<Word*>(word)).load(order);
#else
  return *word;
#endif
}

/// Sets or clears a word; everything this thread wrote or saw before is visible to whoever reads the value.
FLUX_HD inline void store_release(Word* word, Word value) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
#elif !defined(__CUDACC__)
  jitter();
  std::atomic_ref<Word>(*word).store(value, std::memory_order_release);
#endif
}

/// Twelve bytes of data and the tag that says whose they are, which come together: src/tile/packet.h.
struct alignas(16) Packet {
  Word data[3];
  Word tag;
};

FLUX_HD inline void store_packet(Packet* to, Packet const& packet) {
#if defined(__CUDA_ARCH__)
  // One access of 128 bits is performed as a whole; a vector of four would be four accesses.
  uint64_t const low = packet.data[0] | static_cast<uint64_t>(packet.data[1]) << 32,
                 high = packet.data[2] | static_cast<uint64_t>(packet.tag) << 32;
  asm volatile("{ .reg .b128 p; mov.b128 p, {%1, %2}; st.relaxed.sys.global.b128 [%0], p; }" ::"l"(to), "l"(low),
               "l"(high)
               : "memory");
#elif !defined(__CUDACC__)
  for (int i = 0; i < 3; ++i) std::atomic_ref<Word>(to->data[i]).store(packet.data[i], std::memory_order_relaxed);
  store_release(&to->tag, packet.tag);
#endif
}

FLUX_HD inline Packet load_packet(Packet const* from) {
#if defined(__CUDA_ARCH__)
  uint64_t low, high;
  asm volatile("{ .reg .b128 p; ld.relaxed.sys.global.b128 p, [%2]; mov.b128 {%0, %1}, p; }"
               : "=l"(low), "=l"(high)
               : "l"(from)
               : "memory");
  return {{static_cast<Word>(low), static_cast<Word>(low >> 32), static_cast<Word>(high)},
          static_cast<Word>(high >> 32)};
#elif !defined(__CUDACC__)
  Packet packet{{}, load_acquire(&from->tag)};
  for (int i = 0; i < 3; ++i)
    packet.data[i] = std::atomic_ref<Word>(*const_cast<Word*>(from->data + i)).load(std::memory_order_relaxed);
  return packet;
#else
  return *from;
#endif
}

/// Counts up in this rank's own memory and returns the count before: never used across GPUs, where PCIe has no atomics.
/// Acquire and release, so that whoever counts last has seen the writes of all who counted before.
FLUX_HD inline Word count_up(Word* counter) {
#if defined(__CUDA_ARCH__)
  Word before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
  return before;
#elif !defined(__CUDACC__)
  return std::atomic_ref<Word>(*counter).fetch_add(1, std::memory_order_acq_rel);
#else
  return 0;
#endif
}

FLUX_HD inline int64_t now_ns() {
#if defined(__CUDA_ARCH__)
  int64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
#elif !defined(__CUDACC__)
  return std::chrono::steady_clock::now().time_since_epoch().count();
#else
  return 0;
#endif
}

/// Lets others run between two looks at a word. Ranks often share cores on the host, so a long wait sleeps.
FLUX_HD inline void relax(int looks) {
#if defined(__CUDA_ARCH__)
  if (looks > 32) __nanosleep(40);
#elif !defined(__CUDACC__)
  if (looks < 64)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(looks < 256 ? 20 : 100));
#endif
}

// ---- bounded waits ----

/// What a waiter waits for, as its error will say it.
enum class Awaited : Word { kNothing, kCall, kCredit, kRows, kPartial, kResult };

/// What a rank waits for at the moment. Written by a waiter that has waited long, read by the world's watcher and by
/// every rank that has to say why a call ended. Each field is a word of its own: they are read while they are written.
struct Record {
  Word what;  // Awaited
  Word call;  // the call's number in its world
  Word peer;  // whose act is missing
  Word row;   // of which global row, where rows are meant
  Word seen, goal;
  Word since_ms;  // how long, when last written
};

/// Why a call ended: the value of an abort word is `reason << 8 | 1 + rank that raised it`.
enum class Reason : Word { kNone, kTimeout, kPeerGone, kOtherCall, kFailed };

/// How a wait ends when its word never comes. Every wait polls its own rank's abort word; whoever gives up raises the
/// abort words of all ranks. Ranks on GPUs poll words in GPU memory; `told` are then those that the ranks' hosts read.
struct Watch {
  Symmetric<Word> abort;
  Symmetric<Word> told;  // or none
  Record* record = nullptr;
  int64_t limit_ns = 600'000'000'000;
  int rank = 0, ranks = 1;
  Word call = 0;
};

FLUX_HD inline bool aborted(Watch const& watch) { return load_acquire(watch.abort.at(watch.rank)) != 0; }

/// The same, of what the host says; hands the verdict on. Asked rarely: reads across the bus by every block slow down
/// the copies that share it (docs/protocol.md).
FLUX_HD inline bool aborted_by_host(Watch const& watch) {
  Word const* const told = watch.told.at(watch.rank);
  Word const verdict = told ? load_acquire(told) : 0;
  if (verdict != 0) store_release(watch.abort.at(watch.rank), verdict);
  return verdict != 0;
}

FLUX_HD inline void raise_abort(Watch const& watch, Reason reason) {
  Word const verdict = static_cast<Word>(reason) << 8 | static_cast<Word>(watch.rank + 1);
  for (int i = 0; i < watch.ranks; ++i) {
    if (planted(Bug::kLostAbort) && i != watch.rank) continue;
    auto raise = [&](Word* word) {
      if (word && load_acquire(word) == 0) store_release(word, verdict);  // the first cause is the one worth reading
    };
    raise(watch.abort.at(i)), raise(watch.told.at(i));
  }
}

FLUX_HD inline void note(Watch const& watch, Awaited what, int peer, int64_t row, Word seen, Word goal,
                         int64_t waited_ns) {
  Record& r = *watch.record;
  store_release(&r.call, watch.call);
  store_release(&r.peer, static_cast<Word>(peer));
  store_release(&r.row, static_cast<Word>(row));
  store_release(&r.seen, seen);
  store_release(&r.goal, goal);
  store_release(&r.since_ms, static_cast<Word>(waited_ns / 1'000'000));
  store_release(&r.what, static_cast<Word>(what));
}

/// Waits until `look()` returns `goal`. False if the world was aborted, if it returns another non-zero value (the peer
/// makes another call), or after the limit; then the abort words of all ranks are up.
template <class Look>
FLUX_HD bool await_seen(Look&& look, Word goal, Watch const& watch, Awaited what, int peer, int64_t row) {
  constexpr int64_t kNoteAfter = 50'000'000;
  jitter();
  int64_t start = 0, noted = 0;
  for (int looks = 0;; looks += looks < (1 << 30)) {
    Word seen = look();
    if (seen == goal) {
      if (noted) note(watch, Awaited::kNothing, 0, 0, 0, 0, 0);
      return true;
    }
    if (aborted(watch)) return false;
    bool const foreign = seen != 0;
    int64_t const now = now_ns();
    if (start == 0) start = now;
    bool const late = now - start > watch.limit_ns;
    if (foreign || late || now - start - noted > kNoteAfter) {
      noted = now - start;
      note(watch, what, peer, row, seen, goal, noted);
      if (aborted_by_host(watch)) return false;
    }
    if (foreign || late) {
      raise_abort(watch, foreign ? Reason::kOtherCall : Reason::kTimeout);
      return false;
    }
    relax(looks);
  }
}

/// The same of a word.
FLUX_HD inline bool await(Word const* word, Word goal, Watch const& watch, Awaited what, int peer, int64_t row) {
  return await_seen([word] { return load_acquire(word); }, goal, watch, what, peer, row);
}

}  // namespace flux
