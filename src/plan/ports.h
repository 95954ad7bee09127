#pragma once
// The links of a simulated machine: every rank has one way out and one way in, each carries one transfer at a time.
#include <algorithm>
#include <vector>

namespace flux {

class Ports {
 public:
  explicit Ports(int ranks) : out_(static_cast<size_t>(ranks)), in_(static_cast<size_t>(ranks)) {}

  struct Interval {
    double begin, end;
  };
  /// Carries `bytes` from one rank to another, no earlier than `at`, at `gbps`. The switch between them buffers: a busy
  /// way in does not hold up what its sender sends elsewhere. Times in microseconds.
  Interval carry(int from, int to, double at, double bytes, double gbps) {
    if (from == to) return {at, at};
    double const takes = bytes / gbps / 1e3;
    double const begin = out_[static_cast<size_t>(from)].serve(at, takes, bytes);
    return {begin, in_[static_cast<size_t>(to)].serve(begin, takes, bytes) + takes};
  }

  /// Over all ranks: what left them, and the longest that a way was busy.
  double bytes() const {
    double sum = 0;
    for (Port const& port : out_) sum += port.bytes;
    return sum;
  }
  double busiest_us() const {
    double most = 0;
    for (auto const* side : {&out_, &in_})
      for (Port const& port : *side) most = std::max(most, port.busy);
    return most;
  }

 private:
  struct Port {
    double free = 0, busy = 0, bytes = 0;
    /// When it begins.
    double serve(double at, double takes, double more) {
      double const begin = std::max(at, free);
      free = begin + takes, busy += takes, bytes += more;
      return begin;
    }
  };
  std::vector<Port> out_, in_;
};

}  // namespace flux
