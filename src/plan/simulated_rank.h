#pragma once
// A rank of the simulation: its words in real memory, so that real gates and routes work on them; its workers; its copy
// engine; its sums.
#include <deque>
#include <variant>

#include "plan/resolve.h"

namespace flux {

/// A piece that a copy engine carries.
struct Copy {
  int from = 0, to = 0;
  int64_t row = 0, rows = 0;  // global
  double bytes = 0;
  Word const* after = nullptr;      // a word of the engine's rank that has to be set first
  Word const* and_after = nullptr;  // and this one: what a relay adds to
  int64_t set = -1;                 // which word of rank `to`
  bool result = false;              // a summed shard of an all-reduce
  double ready_us = 0;              // when the source's copies have put it into host memory
};

struct Worker {
  explicit Worker(Walk const& first) : walk(first) {}
  Walk walk;
  Tile tile{}, storing{};  // under way, and the one before until it is written
  int slice = 0;           // of k, of the tile under way
  double began = 0, parked = -1;
  double stored = 0;  // when the tile before is written
  double waited = 0, stalled = 0;
};

struct SimulatedRank {
  static constexpr Word kGoal = 2;

  Schedule schedule;
  std::variant<Open, Arrival, Remote> gate;
  std::variant<Keep, Push, Stage, Sum, Broadcast> route;
  std::vector<Word> words;     // what the gate or the sums wait for, set by others
  std::vector<Word> departed;  // Stage: [to][source, band], what our copies wait for
  std::vector<Word> counts;
  std::vector<std::vector<int>> waiting;  // workers parked at a word
  std::deque<Worker> workers;
  int at_work = 0, parked = 0;  // workers with tiles left; of them, those that wait for rows
  double gemm_begin = 0, gemm_end = -1;

  std::vector<Copy> copies;
  size_t next_copy = 0;
  bool copy_waits = false;
  double engine_busy = 0;   // until
  double replay_busy = -1;  // the same of what plays the others in a mirror; < 0: nothing yet

  std::vector<int> missing;  // partials of each band that is summed here
  std::vector<int> meeting;  // of several nodes: the same of [node][band], rows of its rank of our rail
  double added = 0;          // when the last of those sums is made
  int bands_left = 0;
  int incoming = 0;  // copies of gathered rows or of summed shards that are still to come
  double summed = 0, end = 0;

  bool multiplies(double now) const { return now >= gemm_begin && gemm_end < 0 && parked < at_work; }
};

}  // namespace flux
