#pragma once
// Methods on one GPU, interleaved: every round times each of them once, in a new order, so that a GPU that slows down
// as it warms up slows down all of them.
#include <functional>
#include <random>
#include <string>
#include <vector>

struct CUstream_st;

namespace flux::bench {

class Lockstep;

struct GpuMethod {
  std::string name;
  std::function<void()> run;           // enqueues on the stream that is timed
  std::vector<double> us = {};         // of each round
  std::function<double()> timed = {};  // in place of run: says itself how long it took, in us; not in graphs
  double quantile(double q) const;
};

/// What changes from sample to sample, the same for all methods: take(0), take(1), ... take(count - 1), take(0), ...
struct Turns {
  int count = 1;
  std::function<void(int)> take = [](int) {};
};

/// `rounds` rounds after `warm_up` more, the methods in a new order in each. `hold(i)` is called before the clock
/// starts, `run(i)` enqueues a sample of method i, `repeat` runs, on `stream`. `ranks`: who does the same beside us.
void time_rounds(std::vector<GpuMethod>& methods, int warm_up, int rounds, int repeat, CUstream_st* stream,
                 std::mt19937& random, std::function<void(size_t)> const& hold, std::function<void(size_t)> const& run,
                 Lockstep* ranks = nullptr);

/// `rounds` rounds, each method `repeat` times in a row within a sample, enqueued on `stream` while it is held: what
/// the host needs to enqueue is not measured.
void measure(std::vector<GpuMethod>& methods, int rounds, int repeat, std::mt19937& random,
             CUstream_st* stream = nullptr, Turns const& turns = {}, Lockstep* ranks = nullptr);

/// Keeps the stream from going on for so long.
void hold(int64_t ns, CUstream_st* stream);

}  // namespace flux::bench
